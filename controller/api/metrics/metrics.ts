/** All families of /metrics: each part of the controller adds its own. */
import { setImmediate } from 'node:timers/promises'
import { expose, type Family, type Sample, type ValueFamily } from './exposition.ts'

export class Metrics {
  readonly #families = new Map<string, Family>()

  /** @throws Error when the name already exists. */
  add(...families: readonly Family[]): void {
    for (const family of families) {
      if (this.#families.has(family.name))
        throw new Error(`broken invariant: two metrics are named ${family.name}`)
      this.#families.set(family.name, family)
    }
  }

  /** In order. Other work runs between two families, because some visit every node or open task. */
  async text(): Promise<string> {
    let text = ''
    for (const family of this.#families.values()) {
      text += expose(family)
      await setImmediate()
    }
    return text
  }
}

/** Read on each request; null if currently unknown. */
export function gauge(name: string, help: string, read: () => number | null): ValueFamily {
  return { type: 'gauge', name, help, labels: [], samples: () => single(read()) }
}

/** Returns a counter, for a number that only increases. */
export function counted(name: string, help: string, read: () => number | null): ValueFamily {
  return { type: 'counter', name, help, labels: [], samples: () => single(read()) }
}

export function gauges(
  name: string,
  help: string,
  labels: readonly string[],
  samples: () => Iterable<Sample>,
): ValueFamily {
  return { type: 'gauge', name, help, labels, samples }
}

export function counters(
  name: string,
  help: string,
  labels: readonly string[],
  samples: () => Iterable<Sample>,
): ValueFamily {
  return { type: 'counter', name, help, labels, samples }
}

/** One label and its values. */
export function* byLabel(values: Readonly<Record<string, number>>): Generator<Sample> {
  for (const [label, value] of Object.entries(values)) yield { labels: [label], value }
}

function single(value: number | null): readonly Sample[] {
  return value === null ? [] : [{ labels: [], value }]
}
