"""What other programs write, translated into what Smara keeps."""
