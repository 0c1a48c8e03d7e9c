"""Run by Alembic, inside the transaction that `store.migrate` opened."""

from alembic import context

from firstpage.labeling.app.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
