"""What answers say about documents: utilities, choice of questions, ranks, consensus."""
