import type { Config, ConfigFields } from '../../model/config.ts'
import type { Over } from '../../query/preview/impact.ts'
import type { ConfigRecord } from '../../ports/store.ts'
import type { ConfigBody, OverBody, RevisionBody } from './schema.ts'
import { presentInstant } from '../http/instant.ts'

export function presentConfig(config: Config): ConfigBody {
  return { ...config.fields, source: config.source, revision: config.revision }
}

export function presentOver({ gpuCount, overCommittedMib, reserveDeficitMib }: Over): OverBody {
  return { gpus: gpuCount, over_committed_mib: overCommittedMib, reserve_deficit_mib: reserveDeficitMib }
}

export function presentRevision(
  { revision, at, author, fields }: ConfigRecord,
  before: ConfigFields | null,
): RevisionBody {
  const names = Object.keys(fields) as (keyof ConfigFields)[]
  const changed = before === null ? names : names.filter((name) => fields[name] !== before[name])
  return { revision, at: presentInstant(at), author, changed, before, after: fields }
}
