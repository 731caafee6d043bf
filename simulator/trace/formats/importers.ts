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
import { type Importer, TRACE_FORMATS, type TraceFormat } from '../import/importer.ts'
import { TraceError } from '../trace-error.ts'

const BY_FORMAT: Readonly<Record<TraceFormat, Importer>> = {
  headroom,
  csv,
  slurm,
  openb,
  philly,
  helios,
  swf,
  tiresias,
  gavel,
  'azure-llm': azureLlm,
  'nvidia-smi': nvidiaSmi,
  dcgm,
}

export const IMPORTERS: readonly Importer[] = TRACE_FORMATS.map((format) => BY_FORMAT[format])

/** Throws TraceError with the list of formats, the nearest first. */
export function importerOf(format: string): Importer {
  const importer = IMPORTERS.find((candidate) => candidate.format === format)
  if (importer !== undefined) return importer
  const nearest = nearestName(format, TRACE_FORMATS)
  const meant = nearest === null ? '.' : `: did you mean ${nearest}?`
  throw new TraceError(
    { field: 'format' },
    `${JSON.stringify(format)} is not a known format${meant} Known formats: ${TRACE_FORMATS.join(', ')}`,
  )
}
