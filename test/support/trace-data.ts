import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { writeGeneratedTraces } from './generated-traces.ts'
import { temporaryFolder } from './headroom-command.ts'

const SHARED = process.env['HEADROOM_SHARED'] ?? join(import.meta.dirname, '../../../shared')

/** Traces in the formats of the importers, under the file names of the public ones. */
export interface TraceData {
  readonly source: 'public' | 'generated'
  readonly folder: string
}

/**
 * Returns the public traces where they exist (`HEADROOM_SHARED`, else the folder `shared` next to the
 * repository), then the generated ones. Call it once a file, outside the tests.
 */
export function traceData(): readonly [TraceData, ...TraceData[]] {
  const folder = temporaryFolder()
  writeGeneratedTraces(folder)
  const generated: TraceData = { source: 'generated', folder }
  const isPublicHere = existsSync(join(SHARED, 'data'))
  return isPublicHere ? [{ source: 'public', folder: join(SHARED, 'data') }, generated] : [generated]
}
