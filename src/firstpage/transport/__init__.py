"""What all our HTTP servers share: sockets, connections and bodies, and how long each may take."""
