/** All families that /metrics shows: each part of the controller adds its own. */
import { setImmediate } from 'node:timers/promises'
import { expose, type Family, type Sample, type ValueFamily } from './exposition.ts'

export class Metrics {
  readonly #families = new Map<string, Family>()

  /** @throws Error when a name is there already. */
  add(...families: readonly Family[]): void {
    for (const family of families) {
      if (this.#families.has(family.name))
        throw new Error(`broken invariant: two metrics are called ${family.name}`)
      this.#families.set(family.name, family)
    }
  }

  /**
   * In their order. Others have their turn between two families, because some look at every node or open
   * task.
   */
  async text(): Promise<string> {
    let text = ''
    for (const family of this.#families.values()) {
      text += expose(family)
      await setImmediate()
    }
    return text
  }
}

/** Read whenever somebody asks; null: not known now. */
export function gauge(name: string, help: string, read: () => number | null): ValueFamily {
  return { type: 'gauge', name, help, labels: [], samples: () => single(read()) }
}

/** The same for a number that only grows. */
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
