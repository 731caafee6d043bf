import { nearestName } from '../../document/nearest-name.ts'
import { azureLlm } from './azure-llm.ts'
import { csv } from './csv.ts'
import { dcgm } from './dcgm.ts'
import { gavel } from './gavel.ts'
import { headroom } from './headroom.ts'
import { helios } from './helios.ts'
import { nvidiaSmi } from './nvidia-smi.ts'
import { openb } from './openb.ts'
import { philly } from './philly.ts'
import { slurm } from './slurm.ts'
import { swf } from './swf.ts'
import { tiresias } from './tiresias.ts'
import type { Importer } from '../import/importer.ts'
import { TraceError } from '../trace-error.ts'

/** Every format that can be imported. A new one is a file of its own and a line here. */
export const IMPORTERS: readonly Importer[] = [
  headroom,
  csv,
  slurm,
  openb,
  philly,
  helios,
  swf,
  tiresias,
  gavel,
  azureLlm,
  nvidiaSmi,
  dcgm,
]

/** Throws TraceError naming the formats there are, the nearest first. */
export function importerOf(format: string): Importer {
  const importer = IMPORTERS.find((candidate) => candidate.format === format)
  if (importer !== undefined) return importer
  const formats = IMPORTERS.map((known) => known.format)
  const nearest = nearestName(format, formats)
  const meant = nearest === null ? '.' : `: did you mean ${nearest}?`
  throw new TraceError(
    { field: 'format' },
    `${JSON.stringify(format)} is no format that can be imported${meant} There are ${formats.join(', ')}`,
  )
}
