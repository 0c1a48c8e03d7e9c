"""A model behind an HTTP address.

A request goes `app` (routes) -> `limits` (body, slot) -> `ranking` (`json_messages` or
`binary_formats` read it into a `rank_request`, `served_model` scores it) -> back as bytes.
`watched_model` replaces the model when its file changes; `process` runs all of it.
"""
