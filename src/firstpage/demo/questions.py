"""Questions about Python's standard library, with the names that answer them.

Grades: 3 is the answer, 2 also answers the question, 1 helps.  Names that a Python version does not
have are ignored.
"""

from __future__ import annotations

Question = tuple[str, dict[int, tuple[str, ...]]]

QUESTIONS: tuple[Question, ...] = (
    (
        "split a path into folder and file",
        {
            3: ("os.path.split",),
            2: ("os.path.dirname", "os.path.basename"),
            1: ("pathlib.PurePath.parent", "pathlib.PurePath.name", "os.path.splitext"),
        },
    ),
    (
        "read the rows of a csv file",
        {3: ("csv.reader",), 1: ("csv.Sniffer", "csv.writer")},
    ),
    (
        "parse command line arguments",
        {
            3: ("argparse.ArgumentParser",),
            2: ("argparse.ArgumentParser.parse_args", "getopt.getopt"),
            1: ("optparse.OptionParser", "getopt.gnu_getopt", "shlex.split"),
        },
    ),
    (
        "run an external program and capture its output",
        {
            3: ("subprocess.run", "subprocess.check_output"),
            2: ("subprocess.Popen", "subprocess.getoutput"),
            1: ("subprocess.Popen.communicate", "subprocess.check_call", "subprocess.call"),
        },
    ),
    (
        "copy a whole directory tree",
        {3: ("shutil.copytree",), 2: ("shutil.copy2",), 1: ("shutil.copy", "shutil.move")},
    ),
    (
        "delete a folder and everything in it",
        {3: ("shutil.rmtree",), 2: ("os.removedirs",), 1: ("os.rmdir", "pathlib.Path.rmdir")},
    ),
    (
        "create a temporary file that is removed when closed",
        {
            3: ("tempfile.NamedTemporaryFile", "tempfile.TemporaryFile"),
            2: ("tempfile.SpooledTemporaryFile", "tempfile.mkstemp"),
            1: ("tempfile.TemporaryDirectory", "tempfile.mkdtemp"),
        },
    ),
    (
        "find files matching a wildcard pattern",
        {
            3: ("glob.glob", "pathlib.Path.glob"),
            2: ("glob.iglob", "pathlib.Path.rglob", "fnmatch.filter"),
            1: ("fnmatch.fnmatch", "os.walk"),
        },
    ),
    (
        "count how often each element occurs",
        {3: ("collections.Counter",), 2: ("collections.Counter.most_common",), 1: ("statistics.mode",)},
    ),
    (
        "dictionary that supplies missing keys",
        {3: ("collections.defaultdict",), 1: ("collections.ChainMap", "collections.UserDict")},
    ),
    (
        "queue with fast appends and pops on both ends",
        {3: ("collections.deque",), 1: ("queue.Queue", "queue.LifoQueue")},
    ),
    (
        "n largest elements of a dataset",
        {3: ("heapq.nlargest",), 2: ("heapq.nsmallest",), 1: ("heapq.heapify", "heapq.heappop")},
    ),
    (
        "keep a list sorted when inserting items",
        {3: ("bisect.insort", "bisect.insort_right"), 2: ("bisect.insort_left",), 1: ("bisect.bisect_left",)},
    ),
    (
        "cache the results of a function call",
        {3: ("functools.lru_cache", "functools.cache"), 1: ("functools.cached_property",)},
    ),
    (
        "compare two text files and show the differences",
        {
            3: ("difflib.unified_diff", "difflib.Differ"),
            2: ("difflib.context_diff", "difflib.ndiff", "difflib.HtmlDiff"),
            1: ("difflib.SequenceMatcher", "filecmp.cmp"),
        },
    ),
    (
        "find the closest matching words",
        {3: ("difflib.get_close_matches",), 1: ("difflib.SequenceMatcher",)},
    ),
    (
        "wrap a long paragraph of text to a width",
        {3: ("textwrap.wrap", "textwrap.fill"), 2: ("textwrap.TextWrapper",), 1: ("textwrap.shorten",)},
    ),
    (
        "remove common leading whitespace from text",
        {3: ("textwrap.dedent",), 2: ("inspect.cleandoc",), 1: ("textwrap.indent",)},
    ),
    (
        "encode binary data as base64",
        {
            3: ("base64.b64encode",),
            2: ("base64.urlsafe_b64encode", "base64.standard_b64encode", "binascii.b2a_base64"),
            1: ("base64.b64decode", "base64.encodebytes", "base64.b32encode"),
        },
    ),
    (
        "secure random token for a url",
        {3: ("secrets.token_urlsafe",), 2: ("secrets.token_hex", "secrets.token_bytes"), 1: ("secrets.choice",)},
    ),
    (
        "shuffle a list in random order",
        {3: ("random.shuffle", "random.Random.shuffle"), 1: ("random.sample", "random.Random.sample")},
    ),
    (
        "choose k distinct elements at random",
        {3: ("random.sample", "random.Random.sample"), 2: ("random.choices", "random.Random.choices"), 1: ("random.choice",)},
    ),
    (
        "standard deviation of a sample",
        {3: ("statistics.stdev",), 2: ("statistics.pstdev", "statistics.variance"), 1: ("statistics.pvariance",)},
    ),
    (
        "median of numeric data",
        {3: ("statistics.median",), 2: ("statistics.median_low", "statistics.median_high", "statistics.median_grouped"), 1: ("statistics.quantiles",)},
    ),
    (
        "parse json text into python objects",
        {3: ("json.loads",), 2: ("json.load", "json.JSONDecoder"), 1: ("json.JSONDecoder.decode", "json.dumps")},
    ),
    (
        "pretty print nested data structures",
        {3: ("pprint.pprint", "pprint.pformat"), 2: ("pprint.PrettyPrinter", "pprint.pp"), 1: ("pprint.saferepr",)},
    ),
    (
        "difference between two dates in days",
        {3: ("datetime.timedelta",), 1: ("datetime.date.toordinal", "datetime.date")},
    ),
    (
        "convert a timestamp string to a datetime",
        {3: ("datetime.datetime.strptime", "datetime.datetime.fromisoformat"), 2: ("time.strptime",), 1: ("email.utils.parsedate_to_datetime",)},
    ),
    (
        "wait for several threads to finish work in a pool",
        {
            3: ("concurrent.futures.ThreadPoolExecutor", "concurrent.futures.wait"),
            2: ("concurrent.futures.as_completed", "multiprocessing.pool.ThreadPool"),
            1: ("threading.Thread.join", "concurrent.futures.Executor.map"),
        },
    ),
    (
        "run a coroutine until it completes",
        {3: ("asyncio.run",), 2: ("asyncio.Runner.run", "asyncio.run_coroutine_threadsafe"), 1: ("asyncio.create_task", "asyncio.gather")},
    ),
    (
        "download a web page from a url",
        {3: ("urllib.request.urlopen",), 2: ("urllib.request.urlretrieve",), 1: ("urllib.request.Request", "http.client.HTTPConnection")},
    ),
    (
        "break a url into its components",
        {3: ("urllib.parse.urlparse", "urllib.parse.urlsplit"), 2: ("urllib.parse.parse_qs",), 1: ("urllib.parse.urlunparse", "urllib.parse.urljoin")},
    ),
    (
        "escape special characters in html",
        {3: ("html.escape",), 2: ("xml.sax.saxutils.escape",), 1: ("html.unescape", "xml.sax.saxutils.quoteattr")},
    ),
    (
        "send an email through a mail server",
        {3: ("smtplib.SMTP.sendmail", "smtplib.SMTP.send_message"), 2: ("smtplib.SMTP",), 1: ("email.message.EmailMessage", "smtplib.SMTP_SSL")},
    ),
    (
        "extract all members of a zip archive",
        {3: ("zipfile.ZipFile.extractall",), 2: ("zipfile.ZipFile.extract", "shutil.unpack_archive"), 1: ("zipfile.ZipFile",)},
    ),
    (
        "compress bytes with gzip",
        {3: ("gzip.compress",), 2: ("gzip.GzipFile", "zlib.compress"), 1: ("gzip.open", "gzip.decompress")},
    ),
    (
        "iterate over all combinations of items",
        {3: ("itertools.combinations",), 2: ("itertools.combinations_with_replacement", "itertools.permutations"), 1: ("itertools.product",)},
    ),
    (
        "cartesian product of several lists",
        {3: ("itertools.product",), 1: ("itertools.permutations", "itertools.combinations")},
    ),
    (
        "group consecutive items by a key",
        {3: ("itertools.groupby",), 1: ("itertools.takewhile", "itertools.dropwhile")},
    ),
    (
        "measure how long a small piece of code takes",
        {3: ("timeit.timeit", "timeit.Timer"), 2: ("timeit.repeat", "timeit.Timer.timeit"), 1: ("time.perf_counter", "cProfile.run")},
    ),
    (
        "print the traceback of an exception",
        {3: ("traceback.print_exc", "traceback.print_exception"), 2: ("traceback.format_exc", "traceback.print_tb"), 1: ("traceback.TracebackException",)},
    ),
    (
        "get the source code of a function",
        {3: ("inspect.getsource",), 2: ("inspect.getsourcelines", "inspect.getsourcefile"), 1: ("inspect.findsource", "dis.dis")},
    ),
    (
        "rotate log files when they reach a size",
        {3: ("logging.handlers.RotatingFileHandler",), 2: ("logging.handlers.TimedRotatingFileHandler",), 1: ("logging.FileHandler",)},
    ),
    (
        "replace an object with a mock during a test",
        {3: ("unittest.mock.patch",), 2: ("unittest.mock.Mock", "unittest.mock.MagicMock"), 1: ("unittest.mock.create_autospec",)},
    ),
    (
        "exact decimal arithmetic with rounding",
        {3: ("decimal.Decimal",), 2: ("decimal.Decimal.quantize", "decimal.Context"), 1: ("fractions.Fraction",)},
    ),
    (
        "make a context manager from a generator function",
        {3: ("contextlib.contextmanager",), 2: ("contextlib.asynccontextmanager",), 1: ("contextlib.ExitStack", "contextlib.closing")},
    ),
    (
        "ignore an exception on purpose",
        {3: ("contextlib.suppress",), 1: ("contextlib.redirect_stderr",)},
    ),
    (
        "read configuration from an ini file",
        {3: ("configparser.ConfigParser",), 2: ("configparser.RawConfigParser", "configparser.RawConfigParser.read"), 1: ("configparser.RawConfigParser.get",)},
    ),
)  # fmt: skip
