from firstpage.search.encoders.encoder import Encoder as Encoder
from firstpage.search.encoders.loading import load_encoder as load_encoder
