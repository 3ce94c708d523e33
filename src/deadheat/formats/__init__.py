"""Read judgements and runs from files, tables, dictionaries, arrays and search results."""

from deadheat.formats.arrays import (
    Candidates as Candidates,
    counts_per_query as counts_per_query,
    flatten as flatten,
    group_by_query as group_by_query,
    read_grades as read_grades,
    read_whole_numbers as read_whole_numbers,
    unlisted_relevant as unlisted_relevant,
)
from deadheat.formats.dicts import (
    judgements_from_dict as judgements_from_dict,
    run_from_dict as run_from_dict,
)
from deadheat.formats.embeddings import (
    StoredShard as StoredShard,
    open_safetensors as open_safetensors,
    stored_shards as stored_shards,
)
from deadheat.formats.files import (
    COMPRESSED as COMPRESSED,
    TABLES as TABLES,
    run_tag as run_tag,
    table_from_file as table_from_file,
)
from deadheat.formats.folders import (
    Piece as Piece,
    RunFolder as RunFolder,
    is_folder as is_folder,
    run_folder as run_folder,
)
from deadheat.formats.frames import (
    as_frame as as_frame,
    column_ids as column_ids,
    column_of as column_of,
    find_column as find_column,
    is_known as is_known,
    is_table as is_table,
    needed_column as needed_column,
    table_columns as table_columns,
    with_names as with_names,
)
from deadheat.formats.hits import HIT_SHAPES as HIT_SHAPES
from deadheat.formats.ids import (
    are_numbers as are_numbers,
    id_column as id_column,
    is_unicode as is_unicode,
    query_names as query_names,
    text_id as text_id,
)
from deadheat.formats.read import (
    QrelsLike as QrelsLike,
    RunLike as RunLike,
    TableLike as TableLike,
    read_qrels as read_qrels,
    read_run as read_run,
)
from deadheat.formats.search import (
    PADDING as PADDING,
    ranked_groups as ranked_groups,
    search_results as search_results,
)
from deadheat.formats.types import (
    Documents as Documents,
    Judgements as Judgements,
    Run as Run,
    SharedDocuments as SharedDocuments,
)
from deadheat.formats.write import (
    to_parquet as to_parquet,
    trec_qrels as trec_qrels,
    trec_run as trec_run,
)
