"""Experiments on users: each sees one of several rankings, or all of them shown as one list."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from uuid import uuid4

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from firstpage.clicks import interleave
from firstpage.core import DataError, Floats, Ints
from firstpage.data import sort_groups
from firstpage.data.io import RepeatedKey, unique_keys
from firstpage.serving import event_rows
from firstpage.serving.event_log import EventLog
from firstpage.serving.event_rows import STORED, Time, check_fields, identified, now, stored_fields
from firstpage.serving.limits import Refusal
from firstpage.serving.rank_request import RankRequest, User, short
from firstpage.serving.ranking import finite_scores
from firstpage.serving.searching import Ranking, rank_text, texts_of
from firstpage.serving.served_index import IndexSource, ServedIndex
from firstpage.serving.served_model import ServedModel, load
from firstpage.serving.workers import RemoteLog

log = logging.getLogger("firstpage.serving")
Text = Annotated[str, Meta(min_length=1, max_length=100)]
QUICK = ("ab", "team-draft", "balanced")  # methods that take less than a millisecond
OWN_ID = re.compile(r"[0-9a-f-]{36}\.([0-9a-f]{12})")  # of a query, with the mark of its list
LEAST_LENGTH = 10  # of an interleaved list: that of optimized ones depends on the length up to it


class Arm(Struct, forbid_unknown_fields=True):
    """A ranking: of the model in service, of another model file, of the first stage, or sent.

    The first stage of POST /rank is the order in which its candidates are sent; a "request" has the
    order of the arm.
    """

    name: Text
    ranking: Literal["model", "first stage", "request"] = "model"
    model: str | None = None


class ExperimentSettings(Struct, forbid_unknown_fields=True):
    """The contents of `experiment.json`."""

    name: Text
    arms: Annotated[list[Arm], Meta(min_length=2)]
    method: Literal["ab", "team-draft", "balanced", "probabilistic", "optimized", "pairwise"] = (
        "team-draft"
    )
    shares: list[Annotated[float, Meta(gt=0, le=1)]] = []
    salt: str = ""
    start: Time | None = None
    end: Time | None = None
    fields: tuple[str, ...] = STORED


class ShownRanking(NamedTuple):
    """The ranking that a user is shown, its model, and what the log says about the experiment.

    The `mark` is a digest of the rankings: with another one, a page does not continue a list.
    """

    ranking: Ranking
    model: ServedModel
    attributes: Mapping[str, Any]
    mark: str

    def hits(self, depth: int) -> list[str]:
        """Return the ids of the first documents."""
        ids, rows = texts_of(self.model).index.forward.ids, self.ranking.found.rows
        return [ids[row] for row in rows[self.ranking.order[:depth]].tolist()]


class AssignedArms(NamedTuple):
    """The arms that a user sees, and what the log says about the experiment."""

    arms: Sequence[int]
    about: dict[str, Any]


class LiveExperiment:
    """An experiment with its models, which are read once.

    Parameters
    ----------
    path : path
        The file of settings, beside which model files are searched.
    source : IndexSource or None
        The index that is searched, if there is one.

    Raises
    ------
    DataError
        If the settings or a model are not valid.
    """

    def __init__(self, path: Path, source: IndexSource | None = None) -> None:
        self.source = source
        try:
            content = path.read_bytes()
            self.settings = msgspec.json.decode(content, type=ExperimentSettings)
            json.loads(content, object_pairs_hook=unique_keys)  # msgspec keeps the last
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RepeatedKey) as error:
            raise DataError(
                f"{path}: is not a valid experiment ({str(error).rstrip('.')})."
            ) from None
        settings, arms = self.settings, self.settings.arms
        begin, end = settings.start, settings.end
        self.fields = check_fields(settings.fields)
        self._shares = settings.shares or [1 / len(arms)] * len(arms)
        problems = {
            "two arms have the same name": len({arm.name for arm in arms}) < len(arms),
            "'shares' needs one number per arm": len(self._shares) != len(arms),
            "the shares add up to more than 1": sum(self._shares) > 1 + 1e-9,
            "it ends before it starts": bool(begin and end and end <= begin),
            f"{settings.method!r} is for two arms": len(arms) != 2
            and settings.method in ("balanced", "optimized"),
            "an arm that no model ranks has a model file": any(
                arm.model and arm.ranking != "model" for arm in arms
            ),
        }
        for problem, occurs in problems.items():
            if occurs:
                raise DataError(f"{path}: {problem}.")
        if end is not None and end <= event_rows.clock():
            log.warning("%s: has ended; all users see the model in service.", path)
        names = [arm.model for arm in arms if arm.model]
        self._models = {n: replace(load(path.parent / n), is_arm=True) for n in names}
        self._digests: dict[tuple[str, ...], str] = {}
        self.is_quick = settings.method in QUICK and all(m.quick for m in self._models.values())

    def models(self, served: ServedModel) -> list[ServedModel]:
        """Return the model of each arm on the index in service; refuse arms that do not fit."""
        for name, model in self._models.items():
            if served.texts is None or self.source is None:
                check_same_features(name, model, served)
            elif model.texts is None or model.texts.index is not served.texts.index:
                texts = ServedIndex.open(self.source, served.texts.index, model.model, name)
                if texts.first_stage != served.texts.first_stage:
                    raise DataError(f"{name}: has another first stage than the model in service.")
                recipes = [each.features.recipe() for each in (texts, served.texts)]
                is_same = all(recipes[0][key] == recipes[1][key] for key in ("features", "own"))
                bound = replace(model, texts=served.texts if is_same else texts)
                bound.check_on_texts(name)
                self._models[name] = bound
        return [self._models.get(arm.model or "", served) for arm in self.settings.arms]

    def _digest(self, models: Sequence[ServedModel], stage: str) -> str:
        """Return a digest of settings and models; with another digest it is another experiment."""
        key = (*(model.digest for model in models), stage)
        if key not in self._digests:
            settings = msgspec.to_builtins(self.settings)
            frozen = {name: settings[name] for name in ("name", "arms", "method", "shares", "salt")}
            content = json.dumps([frozen, key[:-1], stage])
            self._digests[key] = hashlib.sha256(content.encode()).hexdigest()[:16]
        return self._digests[key]

    def assign(self, models: Sequence[ServedModel], stage: str, client: str) -> AssignedArms | None:
        """Return what a user sees; None for users outside of the experiment."""
        settings, moment = self.settings, event_rows.clock()
        digest = self._digest(models, stage)
        drawn = hashlib.sha256(f"{settings.salt or digest}\0{client}".encode()).digest()
        position = int.from_bytes(drawn[:8], "big") / 2**64
        ends = [end + 1e-9 for end in accumulate(self._shares)]  # 1, in spite of rounding
        arm = next((n for n, end in enumerate(ends) if position < end), -1)
        begun = settings.start is None or settings.start <= moment
        if arm < 0 or not begun or (settings.end is not None and settings.end <= moment):
            return None
        about: dict[str, Any] = {"experiment": settings.name, "digest": digest}
        about |= {"method": settings.method, "arms": [each.name for each in settings.arms]}
        if settings.method == "ab":
            return AssignedArms([arm], {**about, "arm": arm, "shares": self._shares})
        return AssignedArms(range(len(settings.arms)), about)

    def merged(
        self, about: dict[str, Any], orders: Sequence[list[int]], user: User, depth: int
    ) -> tuple[Ints, Mapping[str, Any]]:
        """Return the documents that are shown, and what the log says about the experiment."""
        if self.settings.method == "ab":
            return np.array(orders[0], np.int64), about
        key = f"{about['digest']}\0{user.client}\0{user.text}"
        method, length = self.settings.method, max(depth, LEAST_LENGTH)
        if method == "team-draft":  # what follows matters to no draft of this length
            orders = [order[: length + len(orders)] for order in orders]
        shown = interleave(orders, method, length, key=key)
        return np.array(shown.documents, np.int64), about | shown.page(1, depth).to_dict()

    def orders(self, user: User, numbers: Sequence[int]) -> dict[int, Sequence[Any]]:
        """Return the orders of arms that the request ranks; refuse a request that lacks one."""
        arms = {n: arm.name for n, arm in enumerate(self.settings.arms) if arm.ranking == "request"}
        for name in user.orders or ():
            if name not in arms.values():
                raise Refusal(f"'orders' has {short(name)}, which is not an arm of the request.")
        sent = {n: (user.orders or {}).get(arms[n], ()) for n in numbers if n in arms}
        for n, order in sent.items():
            if not order or len(set(order)) < len(order):
                lack = "has a document twice" if order else "is missing; send its documents"
                raise Refusal(f"'orders': the order of the arm {short(arms[n])} {lack}.")
        return sent

    def search(self, served: ServedModel, user: User, depth: int) -> ShownRanking | None:
        """Return what a user is shown of a search; None outside of the experiment."""
        if user.orders is None and any(arm.ranking == "request" for arm in self.settings.arms):
            return None
        models, texts = self.models(served), texts_of(served)
        stage = f"{texts.first_stage} {texts.candidates}"
        assigned = self.assign(models, stage, user.client)
        if assigned is None:
            return None
        sent, row_of = self.orders(user, assigned.arms), texts.index.forward.row_of
        rankings: list[Ranking] = []
        for n in assigned.arms:
            by_model = self.settings.arms[n].ranking == "model"
            rankings.append(rank_text(models[n], user.text, by_model, rankings))
        found = rankings[0].found
        rows = list(dict.fromkeys([*found.rows.tolist(), *_rows(sent.values(), row_of)]))
        position = {row: n for n, row in enumerate(rows)}
        orders = [
            [position[row_of[name]] for name in sent[n]] if n in sent else ranking.order.tolist()
            for n, ranking in zip(assigned.arms, rankings, strict=True)
        ]
        order, attributes = self.merged(assigned.about, orders, user, depth)
        more = len(rows) - len(found)  # documents that the first stage does not list
        ranks = np.pad(found.stage_ranks, ((0, more), (0, 0)))
        found = replace(found, rows=np.array(rows, np.int64), stage_ranks=ranks)
        scores = np.pad(rankings[0].scores, (0, more), constant_values=np.nan)
        ranking = replace(rankings[0], found=found, scores=scores, order=order)
        mark = mark_of(assigned.about, texts.index.generation, user[:2], rows, orders)
        return ShownRanking(ranking, models[assigned.arms[0]], attributes, mark)

    def rank(
        self, served: ServedModel, request: RankRequest, order: Ints
    ) -> tuple[Ints, Mapping[str, Any], str] | None:
        """Return the candidates that a user is shown, in order, what the log says, and the mark.

        None outside of the experiment.  `order` is that of the model in service.
        """
        assert request.user is not None
        models, n = self.models(served), len(request.X)
        assigned = self.assign(models, "candidates of requests", request.user.client)
        if assigned is None:
            return None
        sent = self.orders(request.user, assigned.arms)
        names = request.ids or range(n)
        position = {name: at for at, name in enumerate(names)} if sent else {}
        orders = []
        for number in assigned.arms:
            model, arm = models[number], self.settings.arms[number]
            if number in sent:
                _rows([sent[number]], position)
                orders.append([position[name] for name in sent[number]])
            elif arm.ranking == "first stage":
                orders.append(list(range(n)))
            else:
                check_same_features(arm.name, model, served)
                own = order
                if model is not served:
                    own = np.argsort(-finite_scores(model, request), kind="stable")
                orders.append(own.tolist())
        mark = mark_of(assigned.about, request.user[:2], list(names), orders)
        return *self.merged(assigned.about, orders, request.user, min(request.top or n, n)), mark


def mark_of(*parts: Any) -> str:
    """Return a digest of the rankings that a user is shown as one list."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:12]


def _rows(orders: Iterable[Sequence[Any]], known: Mapping[Any, int]) -> list[int]:
    """Return the numbers of documents; refuse one that is not known."""
    for order in orders:
        for name in order:
            if name not in known:
                raise Refusal(f"'orders' has {short(name)}, which is not a ranked document.")
    return [known[name] for order in orders for name in order]


def check_same_features(name: str, model: ServedModel, served: ServedModel) -> None:
    """Refuse a model that cannot read the features that clients send for the model in service."""
    read = attrgetter("names", "category_codes", "model.reads_missing")
    if model is not served and read(model) != read(served):
        raise DataError(f"{name}: has other features than the model in service.")


class Traffic:
    """Queries of users: ranked within the experiment, if there is one, and logged.

    Parameters
    ----------
    log : EventLog or RemoteLog
        Where queries are stored.
    experiment : LiveExperiment or None
        The experiment.
    """

    def __init__(self, log: EventLog | RemoteLog, experiment: LiveExperiment | None) -> None:
        self.log, self.experiment = log, experiment

    @property
    def is_quick(self) -> bool:
        """Whether to rank within the experiment takes less time than waking another thread."""
        return self.experiment is None or self.experiment.is_quick

    def search(self, served: ServedModel, user: User, depth: int) -> tuple[ShownRanking, str]:
        """Search and log the query; return what the user is shown, and the id of the query."""
        shown = None
        if self.experiment is not None:
            with _running():
                shown = self.experiment.search(served, user, depth)
        if shown is None:
            ranking = rank_text(served, user.text)
            shown = ShownRanking(ranking, served, {}, "")
            shown = shown._replace(mark=mark_of(user[:2], shown.hits(len(ranking.order))))
        return shown, self._log_query(user, shown.hits(depth), shown.attributes, shown.mark)

    def rank(
        self, served: ServedModel, request: RankRequest, scores: Floats
    ) -> tuple[Ints, str | UnsetType]:
        """Rank and log the query of a request; return the order, and the id of the query."""
        if request.user is None or request.explain:
            return sort_groups(scores, request.offsets)[0], UNSET
        order = np.argsort(-scores, kind="stable")
        shown: tuple[Ints, Mapping[str, Any], str] | None = None
        if self.experiment is not None:
            with _running():
                shown = self.experiment.rank(served, request, order)
        ids = range(len(order)) if request.ids is None else request.ids
        if shown is None:
            shown = order, {}, mark_of(request.user[:2], [ids[row] for row in order.tolist()])
        order, attributes, mark = shown
        hits = [str(ids[row]) for row in order[: request.top].tolist()]
        return order, self._log_query(request.user, hits, attributes, mark)

    def _log_query(
        self, user: User, hits: list[str], attributes: Mapping[str, Any], mark: str
    ) -> str:
        """Log a query, without a wait for the disk; return its id.

        A page that does not continue the list of its query, such as after a reload, is not logged.
        """
        named = OWN_ID.fullmatch(user.query_id or "")
        if named is not None and named[1] != mark:
            return str(user.query_id)
        row: dict[str, Any] = {
            "query_id": user.query_id or f"{uuid4()}.{mark}",
            "client_id": user.client,
            "user_query": user.text,
            "query_response_hit_ids": hits,
            "timestamp": now(),
            "event_id": uuid4().hex,
        }
        row |= {"query_attributes": attributes} if attributes else {}
        where = "the logged query, with the documents that are shown ('depth' or 'top'),"
        identified_row = identified(row, where)
        with suppress(Refusal):  # which the metrics count
            self.log.submit([stored_fields(identified_row, self.log.fields)], urgent=False)
        return str(row["query_id"])


@contextmanager
def _running() -> Iterator[None]:
    """Refuse requests while the experiment cannot run, such as with a changed index."""
    try:
        yield
    except DataError as error:
        raise Refusal(f"the experiment cannot run: {error}", 503) from None
