from firstpage.learning import torch as torch
