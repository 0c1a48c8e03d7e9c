raise RuntimeError("two\nlines")
