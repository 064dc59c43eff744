"""What the code is: files, symbols and what joins them, kept up with every save."""
