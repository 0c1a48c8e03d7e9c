"""Questions about Python, with the entries of its documentation that answer them.

Questions are as people type them: tasks, error messages, single words, and words that the answer
does not contain.  Grades: 3 is the answer, 2 also answers the question, 1 helps.
"""

from __future__ import annotations

Question = tuple[str, dict[int, tuple[str, ...]]]


def _question(text: str, best: str, good: str = "", helpful: str = "") -> Question:
    """Return a question with the names of its answers, separated by blanks, by grade."""
    return text, {3: tuple(best.split()), 2: tuple(good.split()), 1: tuple(helpful.split())}


QUESTIONS: tuple[Question, ...] = (
    # Files and folders
    _question(
        "split a path into folder and file",
        "os.path.split",
        "os.path.dirname os.path.basename",
        "pathlib.PurePath.parent pathlib.PurePath.name os.path.splitext",
    ),
    _question(
        "copy a whole directory tree", "shutil.copytree", "shutil.copy2", "shutil.copy shutil.move"
    ),
    _question(
        "delete a folder and everything in it",
        "shutil.rmtree",
        "os.removedirs",
        "os.rmdir pathlib.Path.rmdir",
    ),
    _question(
        "create a temporary file that is removed when closed",
        "tempfile.NamedTemporaryFile tempfile.TemporaryFile",
        "tempfile.SpooledTemporaryFile tempfile.mkstemp",
        "tempfile.TemporaryDirectory tempfile.mkdtemp",
    ),
    _question(
        "find files matching a wildcard pattern",
        "glob.glob pathlib.Path.glob",
        "glob.iglob pathlib.Path.rglob fnmatch.filter",
        "fnmatch.fnmatch os.walk",
    ),
    _question(
        "how to check if a file exists",
        "os.path.exists pathlib.Path.exists",
        "os.path.isfile pathlib.Path.is_file",
        "os.access os.path.lexists",
    ),
    _question(
        "get file extension",
        "os.path.splitext pathlib.PurePath.suffix",
        "pathlib.PurePath.suffixes",
        "mimetypes.guess_extension pathlib.PurePath.with_suffix",
    ),
    _question(
        "size of a file in bytes", "os.path.getsize", "os.stat pathlib.Path.stat", "os.stat_result"
    ),
    _question(
        "list all files in a directory",
        "os.listdir pathlib.Path.iterdir os.scandir",
        "os.walk glob.glob",
        "pathlib.Path.glob",
    ),
    _question(
        "go through all subfolders recursively",
        "os.walk pathlib.Path.rglob",
        "glob.glob os.fwalk",
        "glob.iglob os.scandir",
    ),
    _question("mkdir -p", "os.makedirs", "pathlib.Path.mkdir", "os.mkdir"),
    _question(
        "rename a file",
        "os.rename pathlib.Path.rename",
        "os.replace shutil.move pathlib.Path.replace",
        "os.renames",
    ),
    _question("remove a file", "os.remove pathlib.Path.unlink", "os.unlink", "shutil.rmtree"),
    _question(
        "home directory of the current user",
        "pathlib.Path.home os.path.expanduser",
        "pathlib.Path.expanduser",
        "getpass.getuser",
    ),
    _question(
        "where am i (working directory)",
        "os.getcwd pathlib.Path.cwd",
        "",
        "os.chdir os.path.abspath",
    ),
    _question(
        "when was a file last changed",
        "os.path.getmtime",
        "os.stat pathlib.Path.stat",
        "os.path.getctime",
    ),
    _question(
        "read whole file into a string",
        "pathlib.Path.read_text open",
        "io.TextIOWrapper",
        "pathlib.Path.read_bytes pathlib.Path.open",
    ),
    _question("append to a text file", "open", "pathlib.Path.open", "io.TextIOWrapper"),
    _question("free disk space", "shutil.disk_usage", "os.statvfs", ""),
    _question(
        "path of a program, like the shell command which", "shutil.which", "", "os.get_exec_path"
    ),
    _question(
        "relative path between two folders",
        "os.path.relpath",
        "pathlib.PurePath.relative_to",
        "os.path.commonpath",
    ),
    _question(
        "make a shortcut that points to another file",
        "os.symlink pathlib.Path.symlink_to",
        "os.link pathlib.Path.hardlink_to",
        "os.readlink",
    ),
    _question(
        "are two files identical",
        "filecmp.cmp",
        "filecmp.cmpfiles filecmp.dircmp",
        "hashlib.file_digest os.path.samefile",
    ),
    _question(
        "throwaway folder for tests",
        "tempfile.TemporaryDirectory tempfile.mkdtemp",
        "",
        "tempfile.gettempdir",
    ),
    _question(
        "make a script executable", "os.chmod pathlib.Path.chmod", "", "os.access stat.filemode"
    ),
    _question(
        "read a certain line of a file",
        "linecache.getline",
        "linecache",
        "io.IOBase fileinput.input",
    ),
    _question(
        "process lines from stdin or files given on the command line",
        "fileinput.input",
        "fileinput fileinput.FileInput",
        "",
    ),
    # Data files
    _question("read the rows of a csv file", "csv.reader", "csv", "csv.Sniffer csv.writer"),
    _question("write csv", "csv.writer", "csv", "csv.Dialect csv.register_dialect"),
    _question(
        "guess whether a table uses commas or semicolons",
        "csv.Sniffer csv.Sniffer.sniff",
        "",
        "csv.Dialect csv",
    ),
    _question(
        "parse json text into python objects",
        "json.loads",
        "json.load json.JSONDecoder",
        "json.JSONDecoder.decode json.dumps",
    ),
    _question("save a dict to a json file", "json.dump", "json.dumps json", "json.JSONEncoder"),
    _question(
        "datetime is not JSON serializable",
        "json.JSONEncoder.default json.JSONEncoder",
        "json.dumps json.dump json",
        "datetime.datetime.isoformat",
    ),
    _question(
        "read configuration from an ini file",
        "configparser.ConfigParser",
        "configparser.RawConfigParser configparser.RawConfigParser.read configparser",
        "configparser.RawConfigParser.get",
    ),
    _question(
        "store python objects on disk",
        "pickle.dump pickle",
        "shelve.open shelve pickle.dumps",
        "pickle.Pickler json.dump",
    ),
    _question(
        "unpickle", "pickle.load pickle.loads", "pickle.Unpickler pickle", "pickle.Unpickler.load"
    ),
    _question("persistent dictionary", "shelve.open shelve", "shelve.Shelf", "pickle.dump"),
    _question(
        "parse xml",
        "xml.etree.ElementTree.parse",
        "xml.etree.ElementTree.XML xml.dom.minidom.parse xml.dom.minidom.parseString xml.etree.ElementTree.ElementTree.parse xml.etree.ElementTree",
        "xml.etree.ElementTree.iterparse",
    ),
    _question(
        "scrape links from html",
        "html.parser.HTMLParser",
        "html.parser html.parser.HTMLParser.feed",
        "urllib.request.urlopen html.unescape",
    ),
    _question(
        "extract all members of a zip archive",
        "zipfile.ZipFile.extractall",
        "zipfile.ZipFile.extract shutil.unpack_archive",
        "zipfile.ZipFile",
    ),
    _question(
        "unpack tar.gz",
        "tarfile.TarFile.extractall",
        "tarfile.open shutil.unpack_archive",
        "tarfile.TarFile.extract tarfile tarfile.TarFile.gzopen",
    ),
    _question(
        "zip a folder", "shutil.make_archive", "zipfile.ZipFile.write zipfile.ZipFile", "zipfile"
    ),
    _question(
        "compress bytes with gzip",
        "gzip.compress",
        "gzip.GzipFile zlib.compress",
        "gzip.open gzip.decompress",
    ),
    _question("read a .gz file line by line", "gzip.open", "gzip.GzipFile gzip", "gzip.decompress"),
    _question(
        "encode binary data as base64",
        "base64.b64encode",
        "base64.urlsafe_b64encode base64.standard_b64encode binascii.b2a_base64",
        "base64.b64decode base64.encodebytes base64.b32encode",
    ),
    _question(
        "bytes to hex string",
        "bytes.hex binascii.hexlify",
        "binascii.b2a_hex bytearray.hex base64.b16encode",
        "hex bytes.fromhex",
    ),
    _question(
        "pack numbers into a binary record",
        "struct.pack",
        "struct struct.Struct struct.pack_into",
        "struct.calcsize array.array.tobytes int.to_bytes",
    ),
    _question(
        "sql query without a database server",
        "sqlite3.connect",
        "sqlite3.Connection.execute sqlite3.Cursor.execute",
        "sqlite3.Connection sqlite3.Cursor.fetchall",
    ),
    _question(
        "insert many rows into a table",
        "sqlite3.Cursor.executemany sqlite3.Connection.executemany",
        "sqlite3.Cursor.execute",
        "sqlite3.Connection.commit",
    ),
    _question(
        "save changes to the database",
        "sqlite3.Connection.commit",
        "",
        "sqlite3.Connection.rollback sqlite3.Connection.backup",
    ),
    # Text
    _question(
        "compare two text files and show the differences",
        "difflib.unified_diff difflib.Differ",
        "difflib.context_diff difflib.ndiff difflib.HtmlDiff",
        "difflib.SequenceMatcher filecmp.cmp",
    ),
    _question(
        "find the closest matching words",
        "difflib.get_close_matches",
        "",
        "difflib.SequenceMatcher",
    ),
    _question(
        "did you mean spelling suggestion",
        "difflib.get_close_matches",
        "difflib.SequenceMatcher.ratio",
        "difflib.SequenceMatcher",
    ),
    _question(
        "how similar are two strings",
        "difflib.SequenceMatcher.ratio difflib.SequenceMatcher",
        "difflib.SequenceMatcher.quick_ratio",
        "difflib.get_close_matches",
    ),
    _question(
        "wrap a long paragraph of text to a width",
        "textwrap.wrap textwrap.fill",
        "textwrap.TextWrapper",
        "textwrap.shorten",
    ),
    _question(
        "remove common leading whitespace from text",
        "textwrap.dedent",
        "inspect.cleandoc",
        "textwrap.indent",
    ),
    _question(
        "truncate a string with an ellipsis", "textwrap.shorten", "", "reprlib textwrap.wrap"
    ),
    _question("trim spaces", "str.strip", "str.rstrip str.lstrip", "textwrap.dedent"),
    _question("how to reverse a string", "reversed", "help/slicings slice", "str.join"),
    _question(
        "split string by comma", "str.split", "re.split str.rsplit", "str.partition shlex.split"
    ),
    _question("concatenate a list of strings with a separator", "str.join", "", "os.path.join"),
    _question(
        "replace part of a string",
        "str.replace",
        "re.sub str.translate",
        "re.subn str.removeprefix",
    ),
    _question(
        "does a string begin with", "str.startswith", "", "str.removeprefix str.find re.match"
    ),
    _question("index of a substring", "str.find str.index", "str.rfind str.rindex", "re.search"),
    _question(
        "capitalize every word", "str.title string.capwords", "str.capitalize", "str.istitle"
    ),
    _question("case insensitive comparison", "str.casefold", "str.lower", "str.upper"),
    _question(
        "pad a number with zeros",
        "str.zfill",
        "str.rjust format help/formatstrings",
        "str.format str.center",
    ),
    _question(
        "is this text a number",
        "str.isdigit str.isnumeric",
        "str.isdecimal",
        "float int unicodedata.numeric",
    ),
    _question(
        "regular expression to find all matches",
        "re.findall",
        "re.finditer re.Pattern.findall",
        "re.search re",
    ),
    _question(
        "regex replace", "re.sub", "re.subn re.Pattern.sub", "re str.replace re.Match.expand"
    ),
    _question("escape special characters in a regex", "re.escape", "", "glob.escape re.compile"),
    _question(
        "difference between re match and search",
        "re.match re.search",
        "re.fullmatch re",
        "re.Pattern.match re.Pattern.search",
    ),
    _question(
        "strip accents from letters",
        "unicodedata.normalize",
        "unicodedata.combining",
        "unicodedata.decomposition str.translate",
    ),
    _question("ascii code of a character", "ord", "", "chr ascii"),
    _question(
        "f-string formatting",
        "help/formatstrings",
        "str.format format help/strings",
        "str.format_map",
    ),
    _question(
        "round to two decimals when printing",
        "round help/formatstrings",
        "format str.format",
        "decimal.Decimal.quantize",
    ),
    _question(
        "escape special characters in html",
        "html.escape",
        "xml.sax.saxutils.escape",
        "html.unescape xml.sax.saxutils.quoteattr",
    ),
    _question(
        "templates with $variables",
        "string.Template",
        "os.path.expandvars string",
        "str.format_map",
    ),
    _question(
        "split a command line like a shell", "shlex.split", "shlex.shlex shlex", "shlex.join"
    ),
    _question("quote a filename for bash", "shlex.quote", "shlex.join", "shlex.split"),
    _question("print without newline", "print", "", "sys"),
    _question(
        "pretty print nested data structures",
        "pprint.pprint pprint.pformat",
        "pprint.pp pprint",
        "pprint.saferepr",
    ),
    # Collections
    _question(
        "count how often each element occurs",
        "collections.Counter",
        "collections.Counter.most_common",
        "statistics.mode list.count",
    ),
    _question(
        "most frequent words",
        "collections.Counter.most_common",
        "collections.Counter",
        "statistics.mode",
    ),
    _question(
        "dictionary that supplies missing keys",
        "collections.defaultdict",
        "dict.setdefault",
        "collections.ChainMap dict.get",
    ),
    _question(
        "queue with fast appends and pops on both ends",
        "collections.deque",
        "",
        "queue.Queue queue.LifoQueue",
    ),
    _question(
        "n largest elements of a dataset",
        "heapq.nlargest",
        "heapq.nsmallest",
        "heapq.heapify heapq.heappop",
    ),
    _question(
        "keep a list sorted when inserting items",
        "bisect.insort_right",
        "bisect.insort_left",
        "bisect.bisect_left bisect",
    ),
    _question(
        "binary search", "bisect.bisect_left bisect.bisect_right", "bisect", "bisect.insort_right"
    ),
    _question(
        "how to sort a dict by value",
        "sorted",
        "dict.items operator.itemgetter list.sort",
        "help/lambda",
    ),
    _question(
        "sort objects by an attribute",
        "operator.attrgetter sorted",
        "list.sort",
        "operator.itemgetter functools.cmp_to_key",
    ),
    _question(
        "sort with my own comparison function",
        "functools.cmp_to_key",
        "sorted list.sort",
        "functools.total_ordering",
    ),
    _question("sort in descending order", "sorted list.sort", "reversed list.reverse", ""),
    _question(
        "remove duplicates from a list", "set", "dict.fromkeys", "frozenset itertools.groupby"
    ),
    _question(
        "merge two dictionaries",
        "dict.update",
        "collections.ChainMap help/dict",
        "help/typesmapping",
    ),
    _question(
        "get value from dict with default",
        "dict.get",
        "dict.setdefault dict.pop",
        "collections.defaultdict",
    ),
    _question(
        "loop over keys and values",
        "dict.items",
        "dict.keys dict.values",
        "help/for help/typesmapping",
    ),
    _question("loop with index", "enumerate", "range", "help/for"),
    _question("iterate over two lists in parallel", "zip", "itertools.zip_longest", "map"),
    _question(
        "last element of a list",
        "help/subscriptions",
        "list.pop help/slicings",
        "collections.deque.pop help/typesseq",
    ),
    _question(
        "flatten a list of lists",
        "itertools.chain.from_iterable",
        "itertools.chain",
        "sum list.extend",
    ),
    _question(
        "split a list into chunks of equal size",
        "itertools.batched",
        "itertools.islice",
        "help/slicings range",
    ),
    _question(
        "add an item to a list", "list.append", "list.insert list.extend", "help/typesseq-mutable"
    ),
    _question("delete an element by position", "list.pop", "help/del", "list.remove"),
    _question(
        "elements in both lists",
        "set.intersection",
        "frozenset.intersection set.intersection_update",
        "set",
    ),
    _question(
        "tuple with named fields",
        "collections.namedtuple typing.NamedTuple",
        "dataclasses.dataclass",
        "types.SimpleNamespace",
    ),
    _question(
        "class with less boilerplate",
        "dataclasses.dataclass",
        "dataclasses.make_dataclass collections.namedtuple typing.NamedTuple",
        "dataclasses.field",
    ),
    _question(
        "mutable default value in a dataclass",
        "dataclasses.field",
        "dataclasses.dataclass",
        "help/function",
    ),
    _question(
        "why is my default argument list shared between calls",
        "help/function",
        "",
        "dataclasses.field copy.copy",
    ),
    _question(
        "copy an object and everything it refers to", "copy.deepcopy", "copy", "copy.copy list.copy"
    ),
    _question(
        "constants with names",
        "enum.Enum",
        "enum.IntEnum enum.StrEnum enum.auto",
        "enum.Flag typing.NamedTuple",
    ),
    _question(
        "order of tasks that depend on each other",
        "graphlib.TopologicalSorter",
        "graphlib.TopologicalSorter.static_order",
        "graphlib.CycleError graphlib.TopologicalSorter.add",
    ),
    _question(
        "priority queue",
        "heapq queue.PriorityQueue",
        "heapq.heappush heapq.heappop",
        "asyncio.PriorityQueue heapq.heapify",
    ),
    _question(
        "LRU",
        "functools.lru_cache",
        "functools.cache collections.OrderedDict",
        "collections.OrderedDict.move_to_end",
    ),
    _question(
        "compact list of numbers of one type", "array.array", "array", "struct.pack memoryview"
    ),
    # Iterators and functions
    _question(
        "cache the results of a function call", "functools.lru_cache functools.cache", "", ""
    ),
    _question(
        "iterate over all combinations of items",
        "itertools.combinations",
        "itertools.combinations_with_replacement itertools.permutations",
        "itertools.product",
    ),
    _question(
        "cartesian product of several lists",
        "itertools.product",
        "",
        "itertools.permutations itertools.combinations",
    ),
    _question(
        "group consecutive items by a key",
        "itertools.groupby",
        "",
        "itertools.takewhile itertools.dropwhile",
    ),
    _question("cumulative sum", "itertools.accumulate", "", "sum math.fsum functools.reduce"),
    _question(
        "sliding window of neighbors",
        "itertools.pairwise",
        "itertools.tee itertools.islice",
        "collections.deque",
    ),
    _question("infinite counter", "itertools.count", "itertools.cycle itertools.repeat", "range"),
    _question("first item of an iterator", "next", "itertools.islice iter", "StopIteration"),
    _question(
        "apply a function to every element",
        "map",
        "itertools.starmap",
        "filter multiprocessing.pool.Pool.map",
    ),
    _question(
        "keep only items that satisfy a condition",
        "filter",
        "itertools.filterfalse itertools.compress help/lists",
        "itertools.takewhile",
    ),
    _question("fold left", "functools.reduce", "itertools.accumulate", ""),
    _question(
        "currying, fix some arguments of a function",
        "functools.partial",
        "functools.partialmethod",
        "help/lambda",
    ),
    _question("anonymous function", "help/lambda", "", "help/function functools.partial"),
    _question("what does yield do", "help/yield", "", "help/function next"),
    _question(
        "write a decorator that keeps the docstring",
        "functools.wraps",
        "functools.update_wrapper",
        "help/function inspect.unwrap",
    ),
    _question(
        "overload a function by the type of its argument",
        "functools.singledispatch",
        "functools.singledispatchmethod typing.overload",
        "",
    ),
    _question("*args and **kwargs", "help/calls help/function", "", "inspect.signature"),
    _question(
        "make a context manager from a generator function",
        "contextlib.contextmanager",
        "contextlib.asynccontextmanager",
        "contextlib.ExitStack contextlib.closing",
    ),
    _question(
        "with statement",
        "help/with",
        "help/context-managers contextlib",
        "contextlib.contextmanager",
    ),
    _question("ignore an exception on purpose", "contextlib.suppress", "help/try help/pass", ""),
    _question("switch case", "help/compound", "", "help/if"),
    _question("ternary operator", "help/booleans", "help/operator-summary", "help/if help/lambda"),
    _question("operator precedence", "help/operator-summary", "", "help/comparisons help/booleans"),
    _question("what counts as false", "help/truth", "bool help/booleans", "all any"),
    _question(
        "change a global variable inside a function",
        "help/global",
        "help/nonlocal",
        "globals help/naming",
    ),
    # Classes and introspection
    _question("call the parent class method", "super", "", "type.mro help/class"),
    _question(
        "getter and setter",
        "property",
        "property.setter property.getter help/attribute-access",
        "setattr getattr",
    ),
    _question(
        "check the type of a variable", "isinstance type", "issubclass", "typing.get_type_hints"
    ),
    _question(
        "list the attributes of an object", "dir", "vars inspect.getmembers", "getattr hasattr"
    ),
    _question(
        "get attribute by name as string", "getattr", "operator.attrgetter", "hasattr setattr vars"
    ),
    _question(
        "interface with methods that subclasses must implement",
        "abc.abstractmethod",
        "abc.ABC abc.ABCMeta typing.Protocol NotImplementedError",
        "inspect.isabstract",
    ),
    _question(
        "duck typing for type hints", "typing.Protocol", "typing.runtime_checkable", "typing.Any"
    ),
    _question(
        "get the source code of a function",
        "inspect.getsource",
        "inspect.getsourcelines inspect.getsourcefile",
        "inspect.findsource dis.dis",
    ),
    _question(
        "arguments that a function accepts",
        "inspect.signature",
        "inspect.getfullargspec inspect.Signature",
        "inspect.Parameter inspect.getcallargs",
    ),
    _question(
        "implement __eq__ and __lt__ once",
        "functools.total_ordering",
        "help/customization",
        "help/comparisons",
    ),
    _question(
        "import a module by its name at run time",
        "importlib.import_module",
        "importlib.util.find_spec",
        "help/import runpy.run_module",
    ),
    _question(
        "reload a module after editing it", "importlib.reload", "", "importlib.invalidate_caches"
    ),
    _question(
        "version of an installed package",
        "importlib.metadata.version",
        "importlib.metadata.distribution importlib.metadata.metadata",
        "platform.python_version",
    ),
    _question(
        "evaluate a string as python literal safely", "ast.literal_eval", "", "eval ast.parse"
    ),
    _question(
        "memory used by an object",
        "sys.getsizeof",
        "tracemalloc.get_traced_memory",
        "gc.get_objects",
    ),
    _question(
        "memory leak",
        "tracemalloc.take_snapshot tracemalloc.start",
        "gc.get_referrers gc.collect tracemalloc.Snapshot.compare_to",
        "weakref tracemalloc.Snapshot.statistics",
    ),
    # Numbers
    _question(
        "standard deviation of a sample",
        "statistics.stdev",
        "statistics.pstdev statistics.variance",
        "statistics.pvariance",
    ),
    _question(
        "median of numeric data",
        "statistics.median",
        "statistics.median_low statistics.median_high statistics.median_grouped",
        "statistics.quantiles",
    ),
    _question("average of a list", "statistics.mean", "statistics.fmean", "sum statistics.median"),
    _question(
        "percentiles",
        "statistics.quantiles",
        "statistics.NormalDist.quantiles",
        "statistics.median",
    ),
    _question(
        "least squares line",
        "statistics.linear_regression",
        "",
        "statistics.correlation statistics.covariance",
    ),
    _question(
        "exact decimal arithmetic with rounding",
        "decimal.Decimal",
        "decimal.Decimal.quantize decimal.Context decimal",
        "fractions.Fraction",
    ),
    _question(
        "why is 0.1 + 0.2 not 0.3",
        "decimal",
        "math.isclose decimal.Decimal",
        "fractions.Fraction help/floating float.as_integer_ratio round",
    ),
    _question("round up", "math.ceil", "", "round math.floor math.trunc"),
    _question("greatest common divisor", "math.gcd", "", "math.lcm fractions"),
    _question("length of the hypotenuse", "math.hypot", "math.dist math.sqrt", ""),
    _question("binomial coefficient", "math.comb", "", "math.factorial math.perm"),
    _question("decimal to binary", "bin", "format int", "hex oct"),
    _question(
        "remainder of a division", "divmod help/binary", "math.fmod math.remainder operator.mod", ""
    ),
    _question("nan check", "math.isnan", "cmath.isnan", "math.isfinite math.isinf"),
    _question("shuffle a list in random order", "random.shuffle", "", "random.sample"),
    _question(
        "choose k distinct elements at random", "random.sample", "random.choices", "random.choice"
    ),
    _question(
        "random number between 1 and 10",
        "random.randint",
        "random.randrange random.uniform",
        "secrets.randbelow random",
    ),
    _question(
        "same random numbers on each run",
        "random.seed",
        "random.getstate random.setstate",
        "random.Random",
    ),
    _question(
        "bell curve",
        "statistics.NormalDist",
        "random.gauss random.normalvariate statistics.NormalDist.pdf",
        "statistics.NormalDist.cdf",
    ),
    # Dates and times
    _question(
        "difference between two dates in days",
        "datetime.timedelta",
        "",
        "datetime.date.toordinal datetime.date",
    ),
    _question(
        "convert a timestamp string to a datetime",
        "datetime.datetime.strptime datetime.datetime.fromisoformat",
        "time.strptime",
        "datetime.date.fromisoformat",
    ),
    _question("today's date", "datetime.date.today", "datetime.datetime.now", "time.localtime"),
    _question(
        "format date as yyyy-mm-dd",
        "datetime.date.strftime datetime.date.isoformat",
        "time.strftime datetime.datetime.isoformat",
        "datetime.date",
    ),
    _question(
        "unix epoch seconds",
        "time.time datetime.datetime.timestamp",
        "time.time_ns calendar.timegm",
        "datetime.datetime.fromtimestamp time.mktime",
    ),
    _question(
        "convert between time zones",
        "datetime.datetime.astimezone",
        "zoneinfo.ZoneInfo.fromutc datetime.timezone",
        "zoneinfo.available_timezones datetime.tzinfo",
    ),
    _question(
        "day of the week",
        "datetime.date.weekday datetime.date.isoweekday",
        "calendar.weekday",
        "datetime.date.isocalendar",
    ),
    _question("leap year", "calendar.isleap", "calendar.leapdays", "calendar.monthrange"),
    _question(
        "number of days in a month",
        "calendar.monthrange",
        "",
        "calendar.Calendar.monthdayscalendar calendar.isleap",
    ),
    _question(
        "wait five seconds", "time.sleep", "asyncio.sleep", "threading.Timer sched.scheduler.enter"
    ),
    _question(
        "measure how long a small piece of code takes",
        "timeit.timeit timeit.Timer",
        "timeit.repeat timeit.Timer.timeit timeit",
        "time.perf_counter cProfile.run",
    ),
    _question(
        "stopwatch",
        "time.perf_counter",
        "time.monotonic time.perf_counter_ns",
        "time.time timeit.timeit",
    ),
    _question(
        "why is my program slow",
        "cProfile.run cProfile",
        "profile.run profile cProfile.Profile",
        "pstats.Stats timeit.timeit pstats",
    ),
    # Processes, threads, asyncio
    _question(
        "run an external program and capture its output",
        "subprocess.run subprocess.check_output",
        "subprocess.Popen subprocess.getoutput",
        "subprocess.Popen.communicate subprocess.check_call subprocess.call",
    ),
    _question(
        "execute shell command",
        "subprocess.run os.system",
        "subprocess.call subprocess.check_call subprocess.Popen subprocess.getoutput",
        "subprocess.getstatusoutput shlex.split",
    ),
    _question(
        "environment variable", "os.getenv", "os.putenv os.path.expandvars os.unsetenv", "os"
    ),
    _question("exit with an error code", "sys.exit", "SystemExit os.abort", "atexit.register"),
    _question(
        "run something when the program ends",
        "atexit.register",
        "atexit weakref.finalize",
        "signal.signal",
    ),
    _question(
        "handle ctrl-c",
        "KeyboardInterrupt signal.signal",
        "signal.default_int_handler",
        "signal.getsignal",
    ),
    _question("number of cores", "os.cpu_count", "os.sched_getaffinity", ""),
    _question(
        "which operating system am i on",
        "platform.system",
        "platform.platform platform.uname os.uname",
        "platform.release",
    ),
    _question(
        "kill a process",
        "os.kill subprocess.Popen.kill",
        "subprocess.Popen.terminate signal.raise_signal",
        "subprocess.Popen.send_signal",
    ),
    _question(
        "wait for several threads to finish work in a pool",
        "concurrent.futures.wait",
        "concurrent.futures.as_completed concurrent.futures.Executor.map",
        "threading.Thread.join concurrent.futures.Executor.shutdown",
    ),
    _question(
        "start a thread",
        "threading.Thread threading.Thread.start",
        "threading.Thread.run",
        "threading.Timer threading",
    ),
    _question(
        "mutex",
        "threading.Lock",
        "threading.RLock asyncio.Lock",
        "threading.Semaphore threading.Condition",
    ),
    _question(
        "use all cpus for a loop",
        "multiprocessing.pool.Pool.map multiprocessing.pool.Pool",
        "multiprocessing.pool.Pool.imap concurrent.futures.ProcessPoolExecutor.map multiprocessing.pool.Pool.starmap",
        "concurrent.futures.Executor.map os.cpu_count",
    ),
    _question(
        "pass data between threads safely",
        "queue.Queue",
        "queue.SimpleQueue queue queue.Queue.put",
        "queue.LifoQueue threading.Lock",
    ),
    _question(
        "call a function later",
        "threading.Timer",
        "sched.scheduler.enter sched",
        "asyncio.BaseEventLoop.call_later",
    ),
    _question(
        "run a coroutine until it completes",
        "asyncio.run",
        "asyncio.Runner.run asyncio.run_coroutine_threadsafe",
        "asyncio.create_task asyncio.gather",
    ),
    _question(
        "await several things at once",
        "asyncio.gather",
        "asyncio.wait asyncio.as_completed",
        "asyncio.create_task help/await",
    ),
    _question(
        "async timeout",
        "asyncio.timeout asyncio.wait_for",
        "asyncio.timeout_at asyncio.Timeout",
        "asyncio.wait asyncio.shield",
    ),
    _question(
        "blocking call in an async function",
        "asyncio.to_thread",
        "asyncio.run_coroutine_threadsafe",
        "asyncio.create_task",
    ),
    # Network
    _question(
        "download a web page from a url",
        "urllib.request.urlopen",
        "urllib.request.urlretrieve",
        "urllib.request http.client",
    ),
    _question(
        "http post request",
        "urllib.request.urlopen",
        "http.client.HTTPConnection.request http.client",
        "urllib.parse.urlencode urllib.request",
    ),
    _question(
        "break a url into its components",
        "urllib.parse.urlparse urllib.parse.urlsplit",
        "urllib.parse.parse_qs",
        "urllib.parse.urlunparse urllib.parse.urljoin",
    ),
    _question(
        "percent encode",
        "urllib.parse.quote",
        "urllib.parse.quote_plus urllib.parse.urlencode",
        "urllib.parse.unquote",
    ),
    _question(
        "query string parameters",
        "urllib.parse.parse_qs urllib.parse.urlencode",
        "urllib.parse.parse_qsl",
        "urllib.parse.urlparse",
    ),
    _question(
        "send an email through a mail server",
        "smtplib.SMTP.sendmail smtplib.SMTP.send_message",
        "smtplib.SMTP smtplib",
        "smtplib.SMTP_SSL",
    ),
    _question(
        "simple web server for static files",
        "http.server.SimpleHTTPRequestHandler",
        "http.server",
        "http.server.BaseHTTPRequestHandler http.server.SimpleHTTPRequestHandler.do_GET",
    ),
    _question(
        "ip address of a host name",
        "socket.gethostbyname",
        "socket.getaddrinfo socket.gethostbyname_ex",
        "socket.gethostname",
    ),
    _question(
        "is an ip in a subnet",
        "ipaddress.ip_network",
        "ipaddress.ip_address ipaddress.IPv4Network ipaddress",
        "ipaddress.IPv4Address",
    ),
    _question(
        "tcp client", "socket.create_connection", "socket.socket asyncio.open_connection", "socket"
    ),
    _question(
        "open a link in the browser",
        "webbrowser.open",
        "webbrowser.open_new webbrowser.open_new_tab",
        "webbrowser webbrowser.get",
    ),
    _question("404 meaning", "http.HTTPStatus", "urllib.error.HTTPError", ""),
    _question(
        "self signed certificate",
        "ssl.create_default_context",
        "ssl.SSLContext",
        "ssl.SSLError ssl.get_server_certificate",
    ),
    # Security
    _question(
        "secure random token for a url",
        "secrets.token_urlsafe",
        "secrets.token_hex secrets.token_bytes",
        "secrets",
    ),
    _question("sha256 of a file", "hashlib.file_digest", "hashlib.sha256 hashlib.new", "hashlib"),
    _question(
        "store passwords", "hashlib.pbkdf2_hmac", "", "hmac.new hmac.compare_digest getpass.getpass"
    ),
    _question("type a password without showing it", "getpass.getpass", "getpass", "input"),
    _question(
        "sign a message with a secret key",
        "hmac.new hmac.digest",
        "hmac hmac.HMAC",
        "hmac.compare_digest hmac.HMAC.hexdigest",
    ),
    _question("guid", "uuid.uuid4", "uuid.uuid1 uuid.UUID", "uuid.uuid5 secrets.token_hex"),
    _question(
        "checksum",
        "zlib.crc32 binascii.crc32",
        "zlib.adler32 hashlib.md5 hashlib.sha256",
        "hashlib",
    ),
    # Command line, logging, tests, debugging
    _question(
        "parse command line arguments",
        "argparse.ArgumentParser",
        "argparse getopt.getopt",
        "optparse.OptionParser getopt.gnu_getopt shlex.split",
    ),
    _question("ask the user for input", "input", "getpass.getpass", "cmd.Cmd"),
    _question(
        "build an interactive shell",
        "cmd.Cmd",
        "cmd code.InteractiveConsole code.interact",
        "cmd.Cmd.cmdloop",
    ),
    _question(
        "width of the terminal",
        "shutil.get_terminal_size os.get_terminal_size",
        "",
        "os.terminal_size",
    ),
    _question(
        "rotate log files when they reach a size",
        "logging.handlers.RotatingFileHandler",
        "logging.handlers.TimedRotatingFileHandler",
        "logging.FileHandler",
    ),
    _question(
        "log to a file",
        "logging.basicConfig logging.FileHandler",
        "logging.handlers.RotatingFileHandler logging.getLogger",
        "logging.Formatter logging",
    ),
    _question(
        "log an exception with its stack trace",
        "logging.exception logging.Logger.exception",
        "traceback.format_exc",
        "logging.error logging.Logger.error",
    ),
    _question(
        "silence warnings",
        "warnings.simplefilter warnings.filterwarnings",
        "warnings.catch_warnings",
        "warnings warnings.resetwarnings",
    ),
    _question(
        "mark a function as deprecated",
        "warnings.warn DeprecationWarning",
        "PendingDeprecationWarning",
        "FutureWarning warnings",
    ),
    _question(
        "print the traceback of an exception",
        "traceback.print_exc traceback.print_exception",
        "traceback.format_exc traceback.print_tb",
        "traceback.TracebackException",
    ),
    _question("set a breakpoint", "breakpoint", "pdb help/debugger", "sys.breakpointhook"),
    _question(
        "replace an object with a mock during a test",
        "unittest.mock.patch",
        "unittest.mock.Mock unittest.mock.MagicMock",
        "unittest.mock.create_autospec",
    ),
    _question(
        "test that a function raises an exception",
        "unittest.TestCase.assertRaises",
        "unittest.TestCase.assertRaisesRegex",
        "unittest.TestCase",
    ),
    _question(
        "skip a test on windows",
        "unittest.skipIf unittest.skipUnless",
        "unittest.skip unittest.TestCase.skipTest",
        "unittest.SkipTest",
    ),
    _question(
        "examples in docstrings as tests",
        "doctest doctest.testmod",
        "doctest.testfile doctest.DocTestSuite",
        "doctest.run_docstring_examples",
    ),
    _question(
        "capture what is printed",
        "contextlib.redirect_stdout",
        "io.StringIO",
        "contextlib.redirect_stderr",
    ),
    _question(
        "create a virtual environment",
        "venv.create venv",
        "venv.EnvBuilder venv.EnvBuilder.create",
        "",
    ),
    _question("translate my program into other languages", "gettext", "", "locale"),
    # Error messages
    _question("list index out of range", "IndexError", "", "LookupError help/subscriptions len"),
    _question(
        "KeyError when reading a dict",
        "KeyError dict.get",
        "dict.setdefault collections.defaultdict",
        "LookupError help/typesmapping",
    ),
    _question(
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0",
        "UnicodeDecodeError",
        "bytes.decode open",
        "UnicodeError codecs.open str.encode",
    ),
    _question(
        "RecursionError: maximum recursion depth exceeded",
        "RecursionError sys.setrecursionlimit",
        "sys.getrecursionlimit",
        "functools.lru_cache",
    ),
    _question(
        "ModuleNotFoundError: No module named 'foo'",
        "ModuleNotFoundError",
        "ImportError",
        "help/import importlib.util.find_spec",
    ),
    _question(
        "local variable referenced before assignment",
        "UnboundLocalError",
        "help/global help/naming",
        "help/nonlocal NameError",
    ),
    _question(
        "TypeError: unhashable type: 'list'",
        "hash",
        "TypeError tuple frozenset",
        "help/customization",
    ),
    _question(
        "JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        "json.JSONDecodeError",
        "json.loads json.load",
        "json.JSONDecoder",
    ),
    _question(
        "'NoneType' object has no attribute",
        "AttributeError",
        "getattr hasattr",
        "help/attribute-references help/bltin-null-object",
    ),
    _question(
        "dictionary changed size during iteration",
        "RuntimeError",
        "dict.copy",
        "dict.items help/for",
    ),
    _question(
        "permission denied", "PermissionError", "os.access os.chmod", "OSError pathlib.Path.chmod"
    ),
    _question(
        "No such file or directory",
        "FileNotFoundError",
        "os.path.exists",
        "OSError pathlib.Path.exists",
    ),
    _question("division by zero", "ZeroDivisionError", "", "ArithmeticError"),
    _question(
        "invalid literal for int() with base 10", "ValueError int", "", "str.isdigit help/try"
    ),
    _question("not enough values to unpack", "ValueError help/assignment", "", "help/exprlists"),
    _question(
        "inconsistent use of tabs and spaces in indentation",
        "TabError",
        "IndentationError",
        "SyntaxError str.expandtabs",
    ),
    _question("name 'x' is not defined", "NameError", "help/naming", "UnboundLocalError"),
    _question(
        "catch several exceptions",
        "help/try",
        "Exception BaseException",
        "help/raise help/exceptions",
    ),
)
