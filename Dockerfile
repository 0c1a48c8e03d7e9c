# The labeling application.  docker build -t firstpage . && docker run -p 8210:8210 -v labels:/project firstpage
FROM python:3.12-slim AS build
WORKDIR /src
# The version, since the history that has it is not copied: --build-arg VERSION=0.1.0
ARG VERSION
COPY pyproject.toml requirements.txt README.md LICENSE ./
COPY src src
RUN SETUPTOOLS_SCM_PRETEND_VERSION="$VERSION" pip wheel --no-cache-dir --wheel-dir /wheels --constraint requirements.txt \
    ".[web,postgres,search,tables,zstd]"

FROM python:3.12-slim
RUN useradd --create-home --uid 1000 firstpage \
    && mkdir /project \
    && chown firstpage /project
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index /wheels/*.whl \
    && rm -r /wheels
USER 1000
VOLUME /project
EXPOSE 8210
HEALTHCHECK --interval=30s --timeout=5s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8210/health')"]
ENTRYPOINT ["firstpage", "label", "serve"]
CMD ["/project", "--host", "0.0.0.0"]
