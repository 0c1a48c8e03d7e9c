from firstpage.data.shards.shards import LOAD_SHARDS as LOAD_SHARDS
from firstpage.data.shards.shards import TABLE_FILE as TABLE_FILE
from firstpage.data.shards.shards import Shards as Shards
from firstpage.data.shards.shards import data_files as data_files
from firstpage.data.shards.shards import heap_bytes as heap_bytes
from firstpage.data.shards.shards import is_shard_folder as is_shard_folder
from firstpage.data.shards.shards import read_shards as read_shards
from firstpage.data.shards.writer import write_shards as write_shards
