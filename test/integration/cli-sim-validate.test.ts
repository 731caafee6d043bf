import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { busyScenario, headroom, headroomJson, temporaryFolder, write } from '../support/headroom-command.ts'
import { SCHEMA_FILE } from '../../tools/reference/scenario-reference.ts'

const folder = temporaryFolder()

describe('headroom sim validate', () => {
  it('names every problem of every file with position and suggestion, and exits with 2', async () => {
    const good = write(folder, 'good.scenario.yaml', busyScenario())
    const bad = write(
      folder,
      'bad.scenario.yaml',
      `${busyScenario('sweeep: {}\n').replace('seed: 42', 'seed: x')}assert: { sometimes: [swapout] }\n`,
    )
    write(folder, 'empty.trace.jsonl', '')
    const untraceable = write(
      folder,
      'untraceable.scenario.yaml',
      busyScenario('  - { trace: empty.trace.jsonl }\n'),
    )
    const { code, stdout, stderr } = await headroom([
      'sim',
      'validate',
      good,
      bad,
      untraceable,
      join(folder, 'none.yaml'),
    ])
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' })
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toEqual([
      `ok        ${good}`,
      `${bad}:3:7: seed: must be a whole number from 0 to 4294967295; is "x"`,
      expect.stringMatching(
        /^\S+bad.scenario.yaml:14:1: sweeep: is not a known key; did you mean sweep\?/,
      ) as string,
      expect.stringMatching(
        /^\S+bad.scenario.yaml:15:23: assert.sometimes\[0\]: .* did you mean swap_out\?/,
      ) as string,
      expect.stringMatching(
        /^\S+untraceable.scenario.yaml:14:14: workload\[2\].trace: .*empty.trace.jsonl:1: is empty/,
      ) as string,
      `${join(folder, 'none.yaml')}:1:1: no such file`,
    ])
    const told = await headroomJson<readonly { is_valid: boolean; problems: readonly object[] }[]>(
      ['sim', 'validate', good, bad],
      {
        code: 2,
      },
    )
    expect(told.map(({ is_valid, problems }) => [is_valid, problems.length])).toEqual([
      [true, 0],
      [false, 3],
    ])
    expect(told[1]?.problems[0]).toEqual({
      line: 3,
      column: 7,
      path: 'seed',
      detail: expect.stringContaining('is "x"') as string,
    })
  })

  it('checks all scenarios of the project by default', async () => {
    const { code, stdout } = await headroom(['sim', 'validate'])
    expect({
      code,
      isAllOk: stdout.split('\n').every((line) => line === '' || line.startsWith('ok ')),
    }).toEqual({ code: 0, isAllOk: true })
  })
})

describe('headroom sim schema', () => {
  it('prints the published schema', async () => {
    const { code, stdout } = await headroom(['sim', 'schema'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual(JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')))
  })
})
