"""Reports: tables in several formats, SVG drawings and self-contained HTML pages."""
