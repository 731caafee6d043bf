import { resolve } from 'node:path'
import { SCHEMA_VERSION } from '../../controller/adapters/sqlite/migrations.ts'
import { verifyStore } from '../../controller/adapters/sqlite/verify.ts'
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import type { StoreOptions } from './store-path.ts'
import { requireFile, storePath } from './store-path.ts'

/** @throws UsageError, or StoreFault, each one line. */
export async function verify(file: string | undefined, options: StoreOptions): Promise<number> {
  const path = file === undefined ? storePath(options) : resolve(file)
  requireFile(path, ': name it, or its folder with --data-dir')
  const { schema, epoch, tasks, nodes, events, problems } = await verifyStore(path)
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  if (problems.length > 0) {
    process.stderr.write(`${path}: damaged\n`)
    return EXIT_FAILED
  }
  const age = schema === SCHEMA_VERSION ? '' : ` (this program migrates it to ${SCHEMA_VERSION})`
  process.stdout.write(
    `${path}: intact; schema ${schema}${age}, epoch ${epoch}, ${tasks} tasks, ${nodes} nodes, ${events} ` +
      `events\n`,
  )
  return EXIT_OK
}
