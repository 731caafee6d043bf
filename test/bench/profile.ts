/** The time of a profiled process by function: those with the most self time. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const SHOWN = 25

/** Options that make node write a profile to the folder. */
export function profileFlags(folder: string): readonly string[] {
  return ['--cpu-prof', `--cpu-prof-dir=${folder}`]
}

/** One line per function of the latest profile. */
export function topSelfTimes(folder: string): readonly string[] {
  const file = readdirSync(folder)
    .filter((each) => each.endsWith('.cpuprofile'))
    .sort((a, b) => (a < b ? -1 : 1))
    .at(-1)
  if (file === undefined) return ['no profile was written']
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile
  const nameOf = new Map(nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]))
  const selfUs = new Map<string, number>()
  let totalUs = 0
  samples.forEach((id, i) => {
    const us = timeDeltas[i] ?? 0
    const name = nameOf.get(id) ?? '?'
    totalUs += us
    selfUs.set(name, (selfUs.get(name) ?? 0) + us)
  })
  const top = [...selfUs].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, SHOWN)
  return [
    join(folder, file),
    ...top.map(([name, us]) => `${((100 * us) / totalUs).toFixed(1).padStart(6)} %  ${name}`),
  ]
}

function placeOf({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']): string {
  const name = functionName === '' ? '(anonymous)' : functionName
  return url === '' ? name : `${name}  ${basename(url)}:${lineNumber + 1}`
}
