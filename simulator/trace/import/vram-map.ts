import type { Mib, Priority } from '../../../protocol/units.ts'
import { TraceError } from '../trace-error.ts'

/** VRAM of one GPU by model name. */
export type VramMap = ReadonlyMap<string, Mib>

/**
 * Models of the openb trace whose VRAM is public. Its G2 and G3 are not disclosed. Source: data README of the
 * trace.
 */
const DEFAULT_VRAM_MAP: VramMap = new Map([
  ['P100', 16_384],
  ['T4', 16_384],
  ['V100M16', 16_384],
  ['V100M32', 32_768],
  ['A10', 24_576],
])

export function withDefaultVram(vramMap: VramMap | undefined): VramMap {
  return vramMap === undefined ? DEFAULT_VRAM_MAP : new Map([...DEFAULT_VRAM_MAP, ...vramMap])
}

/** The smallest VRAM of the models. Throws TraceError with every model whose VRAM is unknown. */
export function smallestVramMib(
  models: readonly string[],
  vramMap: VramMap,
  where: { file: string; line?: number; field: string },
): Mib {
  const unknown = models.filter((model) => !vramMap.has(model))
  if (unknown.length > 0) {
    const given = unknown.map((model) => `${model}=MIB`).join(',')
    throw new TraceError(
      where,
      `the VRAM of model ${unknown.join(' and ')} is not known: add --vram-map ${given}`,
    )
  }
  return Math.min(...models.map((model) => vramMap.get(model)!))
}

/** `G2=24576,G3=81920`. Throws TraceError. */
export function parseVramMap(text: string): Map<string, Mib> {
  return parsePairs(text, 'vram_map', (value, pair) => {
    const mib = /^[0-9]{1,8}$/.test(value) ? Number(value) : 0
    if (mib < 1)
      throw new TraceError({ field: 'vram_map' }, `${pair} must be MODEL=MIB with a whole number of MiB`)
    return mib
  })
}

/** `LS=0,BE=P3`. Throws TraceError. */
export function parsePriorityMap(text: string): Map<string, Priority> {
  return parsePairs(text, 'priority_map', (value, pair) => {
    const digit = /^P?([0-4])$/.exec(value)?.[1]
    if (digit === undefined)
      throw new TraceError({ field: 'priority_map' }, `${pair} must be WORD=P0 to WORD=P4`)
    return Number(digit) as Priority
  })
}

/** `id=JobID,at=Submit`: columns by field. Throws TraceError. */
export function parseColumns(text: string): Map<string, string> {
  return parsePairs(
    text,
    'columns',
    (value, pair) => {
      if (value === '') throw new TraceError({ field: 'columns' }, `${pair} must be FIELD=COLUMN`)
      return value
    },
    (pair) => pair.indexOf('='),
  )
}

function parsePairs<T>(
  text: string,
  field: string,
  parse: (value: string, pair: string) => T,
  separatorOf: (pair: string) => number = (pair) => pair.lastIndexOf('='),
): Map<string, T> {
  const map = new Map<string, T>()
  for (const pair of text.split(',')) {
    const equals = separatorOf(pair)
    const key = pair.slice(0, Math.max(0, equals)).trim()
    if (key === '') throw new TraceError({ field }, `${JSON.stringify(pair)} must be KEY=VALUE`)
    if (map.has(key)) throw new TraceError({ field }, `${key} is given twice`)
    map.set(key, parse(pair.slice(equals + 1).trim(), pair.trim()))
  }
  return map
}
