from firstpage.search.encoders.cross_encoder import CrossEncoder as CrossEncoder
from firstpage.search.encoders.encoder import Encoder as Encoder
from firstpage.search.encoders.loading import load_encoder as load_encoder
