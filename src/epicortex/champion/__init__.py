"""The champion: the model that people take home, as a file, as a module and in other formats."""
