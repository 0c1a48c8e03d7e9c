"""Results for people: tables in several notations, drawings, one self-contained page."""
