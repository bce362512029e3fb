"""What the verbs share: the dispatcher, options, the terminal, finding and recovering traces."""
