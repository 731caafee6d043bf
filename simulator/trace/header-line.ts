/** The header line of a trace: from text to header and back. */
import {
  integer,
  LineProblem,
  object,
  optionalText,
  parseObject,
  refuseUnknownKeys,
  shown,
  textOf,
} from './json-fields.ts'
import { TRACE_VERSION, type TraceHeader, type TraceImporter, type TraceSource } from './trace-format.ts'

const HEADER_KEYS: ReadonlySet<string> = new Set<keyof TraceHeader>([
  'trace',
  'version',
  't_unit',
  'source',
  'importer',
  'rows',
  'dropped',
])
const SOURCE_KEYS: ReadonlySet<string> = new Set<keyof TraceSource>(['file', 'sha256', 'licence', 'origin'])
const IMPORTER_KEYS: ReadonlySet<string> = new Set<keyof TraceImporter>([
  'format',
  'options',
  'synthetic',
  'ignored',
  'adjusted',
])

/** Throws LineProblem. Only `trace`, `version` and `t_unit` are required. */
export function parseHeader(text: string): TraceHeader {
  const line = parseObject(text)
  if (line['trace'] === undefined)
    throw new LineProblem('trace', 'is missing: a trace begins with a header line')
  refuseUnknownKeys(line, HEADER_KEYS, '')
  if (line['version'] !== TRACE_VERSION)
    throw new LineProblem('version', `must be ${TRACE_VERSION}, is ${shown(line['version'])}`)
  if (line['t_unit'] !== 'ms') throw new LineProblem('t_unit', `must be "ms", is ${shown(line['t_unit'])}`)
  return {
    trace: textOf(line['trace'], 'trace'),
    version: TRACE_VERSION,
    t_unit: 'ms',
    source: sourceOf(line['source']),
    importer: importerOf(line['importer']),
    rows: line['rows'] === undefined ? 0 : integer(line['rows'], 'rows', 0),
    dropped: countsOf(line['dropped'], 'dropped'),
  }
}

export function formatHeader(header: TraceHeader): string {
  const { trace, version, t_unit, source, importer, rows, dropped } = header
  return JSON.stringify({ trace, version, t_unit, source, importer, rows, dropped })
}

function sourceOf(value: unknown): TraceSource | null {
  if (value === undefined || value === null) return null
  const source = object(value, 'source')
  refuseUnknownKeys(source, SOURCE_KEYS, 'source.')
  return {
    file: textOf(source['file'], 'source.file'),
    sha256: textOf(source['sha256'], 'source.sha256'),
    licence: optionalText(source['licence'], 'source.licence'),
    origin: optionalText(source['origin'], 'source.origin'),
  }
}

function importerOf(value: unknown): TraceImporter | null {
  if (value === undefined || value === null) return null
  const importer = object(value, 'importer')
  refuseUnknownKeys(importer, IMPORTER_KEYS, 'importer.')
  const synthetic = importer['synthetic'] ?? []
  if (!Array.isArray(synthetic))
    throw new LineProblem('importer.synthetic', `must be a list of names, is ${shown(synthetic)}`)
  return {
    format: textOf(importer['format'], 'importer.format'),
    options: importer['options'] === undefined ? {} : object(importer['options'], 'importer.options'),
    synthetic: synthetic.map((name, i) => textOf(name, `importer.synthetic[${i}]`)),
    ignored: countsOf(importer['ignored'], 'importer.ignored'),
    adjusted: countsOf(importer['adjusted'], 'importer.adjusted'),
  }
}

function countsOf(value: unknown, field: string): Readonly<Record<string, number>> {
  if (value === undefined) return {}
  return Object.fromEntries(
    Object.entries(object(value, field)).map(([key, count]) => [key, integer(count, `${field}.${key}`, 0)]),
  )
}
