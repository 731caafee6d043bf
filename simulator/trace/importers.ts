import { nearestName } from '../scenario/nearest-name.ts'
import { azureLlm } from './formats/azure-llm.ts'
import { csv } from './formats/csv.ts'
import { dcgm } from './formats/dcgm.ts'
import { gavel } from './formats/gavel.ts'
import { headroom } from './formats/headroom.ts'
import { helios } from './formats/helios.ts'
import { nvidiaSmi } from './formats/nvidia-smi.ts'
import { openb } from './formats/openb.ts'
import { philly } from './formats/philly.ts'
import { slurm } from './formats/slurm.ts'
import { swf } from './formats/swf.ts'
import { tiresias } from './formats/tiresias.ts'
import type { Importer } from './importer.ts'
import { TraceError } from './trace-error.ts'

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
