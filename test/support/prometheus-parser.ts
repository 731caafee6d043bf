/**
 * Parses the text format of Prometheus (0.0.4) strictly, independently of its writer. Throws at the first
 * invalid line.
 */

export interface ParsedSample {
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly value: number
}

export interface ParsedFamily {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: ParsedSample[]
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/
const TYPES = new Set(['counter', 'gauge', 'histogram', 'summary', 'untyped'])
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]Inf|NaN)$/

export function parseExposition(text: string): ReadonlyMap<string, ParsedFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const families = new Map<string, ParsedFamily>()
  const seen = new Set<string>()
  let current: ParsedFamily | null = null
  let pendingHelp: { readonly name: string; readonly help: string } | null = null
  for (const line of text.slice(0, -1).split('\n')) {
    const fail = (why: string): never => {
      throw new Error(`${why}: ${line}`)
    }
    const help = /^# HELP (\S+) (.*)$/.exec(line)
    const type = /^# TYPE (\S+) (\S+)$/.exec(line)
    if (help !== null) {
      if (pendingHelp !== null) fail('two helps in a row')
      if (!/^(?:[^\\]|\\[\\n])*$/.test(help[2] as string)) fail('a help with an unknown escape')
      pendingHelp = { name: help[1] as string, help: help[2] as string }
    } else if (type !== null) {
      const name = type[1] as string
      if (!NAME.test(name) || !TYPES.has(type[2] as string)) fail('no name or no type')
      if (pendingHelp?.name !== name) fail('a type without its help')
      if (families.has(name)) fail('a family that comes twice')
      current = { name, type: type[2] as string, help: pendingHelp?.help ?? '', samples: [] }
      pendingHelp = null
      families.set(name, current)
    } else {
      if (line.startsWith('#') || line === '') fail('a comment or an empty line')
      if (current === null || pendingHelp !== null) return fail('a sample without its family')
      const sample = parseSample(line)
      const suffixes = current.type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
      if (!suffixes.some((suffix) => sample.name === `${current?.name}${suffix}`))
        fail('a sample of another family')
      const labels = [...sample.labels].toSorted(([a], [b]) => (a < b ? -1 : 1))
      const series = `${sample.name} ${JSON.stringify(labels)}`
      if (seen.has(series)) fail('a series that comes twice')
      seen.add(series)
      current.samples.push(sample)
    }
  }
  for (const family of families.values()) checkFamily(family)
  return families
}

/** Character by character: the value of a label may contain any character. */
function parseSample(line: string): ParsedSample {
  const [, name = '', rest = ''] = /^([^{\s]+)(.*)$/.exec(line) ?? []
  if (!NAME.test(name)) throw new Error(`no name: ${line}`)
  const labels = new Map<string, string>()
  let at = 0
  if (rest[0] === '{') {
    at = 1
    while (rest[at] !== '}') {
      const equals = rest.indexOf('="', at)
      const label = rest.slice(at, equals)
      if (equals < 0 || !LABEL.test(label) || labels.has(label)) throw new Error(`a bad label: ${line}`)
      let value = ''
      for (at = equals + 2; rest[at] !== '"'; at++) {
        if (at >= rest.length) throw new Error(`a value without an end: ${line}`)
        if (rest[at] === '\\') {
          at += 1
          const escaped: string | undefined = { n: '\n', '"': '"', '\\': '\\' }[rest[at] ?? '']
          if (escaped === undefined) throw new Error(`an unknown escape: ${line}`)
          value += escaped
        } else value += rest[at]
      }
      labels.set(label, value)
      at += 1
      if (rest[at] === ',' && rest[at + 1] !== '}') at += 1
      else if (rest[at] !== '}') throw new Error(`no comma or brace: ${line}`)
    }
    at += 1
  }
  const value = rest.slice(at)
  if (value[0] !== ' ' || !NUMBER.test(value.slice(1)))
    throw new Error(`no number, or more than one: ${line}`)
  return { name, labels, value: Number(value.slice(1).replace('Inf', 'Infinity')) }
}

function checkFamily({ name, type, help, samples }: ParsedFamily): void {
  if (help.trim() === '') throw new Error(`${name} has no help`)
  if (type === 'counter') {
    if (!name.endsWith('_total')) throw new Error(`${name} is a counter and does not end in _total`)
    if (samples.some(({ value }) => !(value >= 0))) throw new Error(`${name} counts below 0`)
  } else if (name.endsWith('_total')) throw new Error(`${name} is not a counter and ends in _total`)
  if (type === 'histogram') checkHistogram(name, samples)
  const shapes = new Set(
    samples.map(({ labels }) => [...labels.keys()].filter((label) => label !== 'le').join()),
  )
  if (shapes.size > 1) throw new Error(`${name} has samples with different labels`)
}

function checkHistogram(name: string, samples: readonly ParsedSample[]): void {
  const bySeries = Map.groupBy(samples, ({ labels }) =>
    JSON.stringify([...labels].filter(([label]) => label !== 'le')),
  )
  for (const [series, ofOne] of bySeries) {
    const buckets = ofOne.filter((sample) => sample.name.endsWith('_bucket'))
    const count = ofOne.find((sample) => sample.name.endsWith('_count'))?.value
    const sum = ofOne.find((sample) => sample.name.endsWith('_sum'))?.value
    const bounds = buckets.map(({ labels }) =>
      Number((labels.get('le') ?? 'none').replace('Inf', 'Infinity')),
    )
    if (bounds.some((bound, i) => Number.isNaN(bound) || (i > 0 && bound <= (bounds[i - 1] as number)))) {
      throw new Error(`${name}${series}: bounds do not rise`)
    }
    if (buckets.some(({ value }, i) => i > 0 && value < (buckets[i - 1]?.value ?? 0)))
      throw new Error(`${name}${series}: not cumulative`)
    if (bounds.at(-1) !== Infinity || buckets.at(-1)?.value !== count || sum === undefined)
      throw new Error(`${name}${series}: incomplete`)
  }
}
