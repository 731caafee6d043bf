/** `headroom sim counterfactual` as a command. */
import { describe, expect, it } from 'vitest'
import { headroom, temporaryFolder, write } from '../support/headroom-command.ts'

const file = write(
  temporaryFolder(),
  'choice.scenario.yaml',
  `
scenario: choice
version: 1
fleet: [{ name: one, gpu: { vram_mib: 36000 } }]
config: { default_vram_overcommit_percent: 200, idle_swap_out_seconds: 60 }
workload:
  - { task: { id: a, vram_mib: 16000, work: { kind: phases,
      phases: [[10s, 5m], [10s, 5m], [10s, 20m], [10s, 0s]] } } }
  - { task: { id: b, at: 1s, vram_mib: 16000, work: { kind: phases, phases: [[10s, 40m], [10s, 0s]] } } }
  - { task: { id: c, at: 2m, vram_mib: 16000, work: { kind: phases, phases: [[3m, 10m], [10s, 0s]] } } }
`,
)
const sim = (...args: readonly string[]) => headroom(['sim', 'counterfactual', file, ...args])

describe('headroom sim counterfactual', () => {
  it('lists decisions, compares one, and names invalid arguments', async () => {
    const [list, one, json, nobody, half] = await Promise.all([
      sim(),
      sim('--decision', '1', '--victim', 'b'),
      sim('--decision', '1', '--victim', 'b', '--json'),
      sim('--decision', '1', '--victim', 'x'),
      sim('--decision', '1'),
    ])
    expect(list).toMatchObject({ code: 0, stderr: '' })
    expect(list.stdout.split('\n')[0]).toBe('1  at 2m  c on one: swapped out a; alternatives: b')
    expect(one.stdout).toMatch(/^Decision 1 at 2m, for c on one: swapped out a; instead: b\.\n/)
    expect(one.stdout).toMatch(/ {2}swap_outs +2 +1 +-1\n/)
    expect(JSON.parse(json.stdout)).toMatchObject({ otherVictimIds: ['b'], tasksChanged: 1 })
    expect(nobody).toMatchObject({
      code: 2,
      stderr: 'error: task x could not leave in decision 1; those that could: a, b\n',
    })
    expect(half).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--decision and --victim must be used together') as string,
    })
  })
})
