import type { Config } from '../../domain/config.ts'
import type { ConfigBody } from '../schema/config.ts'

export function presentConfig(config: Config): ConfigBody {
  return { ...config.fields, source: config.source, revision: config.revision }
}
