import type { Importer } from './importer.ts'
import { openb } from './formats/openb.ts'
import { tiresias } from './formats/tiresias.ts'
import { TraceError } from './trace-error.ts'

/** Every format that can be imported. A new one is a file of its own and a line here. */
export const IMPORTERS: readonly Importer[] = [openb, tiresias]

/** Throws TraceError naming the formats there are. */
export function importerOf(format: string): Importer {
  const importer = IMPORTERS.find((candidate) => candidate.format === format)
  if (importer !== undefined) return importer
  throw new TraceError({ field: 'format' }, `${JSON.stringify(format)} is not one of ${IMPORTERS.map((known) => known.format).join(', ')}`)
}
