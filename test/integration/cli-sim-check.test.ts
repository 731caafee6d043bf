import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { busyScenario, headroom, headroomJson, temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const ASSERTS =
  'assert: { always: [single_run], sometimes: [swap_out, swap_in], final: [{ metric: ' +
  'tasks.unfinished, equals: 0 }] }\n'

function scenario(name: string, extra: string): string {
  return write(
    folder,
    `${name}.scenario.yaml`,
    busyScenario(extra).replace('scenario: busy', `scenario: ${name}`),
  )
}

describe('headroom sim check', () => {
  it('refuses a scenario of years, and says how to run a part of it', async () => {
    const { code, stdout } = await headroom(['sim', 'check', 'scenarios/live-demo.scenario.yaml'])
    expect(code).toBe(1)
    expect(stdout).toContain('it has about 4,380,000 tasks, and a check runs at most 2,000,000. Lower')
    expect(stdout).toContain('headroom sim run scenarios/live-demo.scenario.yaml --until 1d\n')
  })

  it('records a digest, checks it, and exits with 6 and the changed figures on a difference', async () => {
    const file = scenario('recorded', ASSERTS)
    const expected = join(folder, 'recorded.expected.json')
    expect(await headroom(['sim', 'check', file])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('no digest is recorded') as string,
    })
    expect(await headroom(['sim', 'check', file, '--update'])).toMatchObject({
      code: 0,
      stdout: `recorded  recorded: ${expected}\n`,
    })
    const { digest } = JSON.parse(readFileSync(expected, 'utf8')) as { digest: string }
    const single = await headroomJson<{ digest: string }>(['sim', 'run', file])
    expect(digest).toBe(single.digest)
    expect(await headroom(['sim', 'check', file])).toMatchObject({ code: 0, stdout: 'ok        recorded\n' })

    writeFileSync(file, readFileSync(file, 'utf8').replace('seed: 42', 'seed: 43'))
    const { code, stdout } = await headroom(['sim', 'check', file])
    expect(code).toBe(6)
    expect(stdout).toContain(`but ${digest} is recorded`)
    expect(stdout).toMatch(/utilization_percent: [\d.]+ → [\d.]+/)
    expect(stdout).toContain(
      `The decisions differ from the recording. If that is intended: headroom sim check --update ${file}`,
    )
    expect(stdout).toContain(`repeat: headroom sim check ${file}`)

    const accepted = await headroom(['sim', 'check', file, '--update'])
    expect(accepted.stdout).toMatch(
      new RegExp(`^recorded  recorded: .*\\n +digest: ${digest} → [0-9a-f]{64}\\n`),
    )
    expect(accepted.stdout).toMatch(/utilization_percent: [\d.]+ → [\d.]+/)
    expect(await headroom(['sim', 'check', file])).toMatchObject({ code: 0, stdout: 'ok        recorded\n' })
  })

  it('exits with 1 and the failed assertions, and never records a failure', async () => {
    const fine = scenario('fine', ASSERTS)
    const failing = scenario(
      'failing',
      'assert: { sometimes: [reservation], final: [{ metric: queue_wait_s.p50, max: 0.001 }] }\n',
    )
    const { code, stdout } = await headroom(['sim', 'check', fine, failing, '--update'])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^recorded {2}fine: /m)
    expect(stdout).toMatch(/^FAILED {4}failing$/m)
    expect(stdout).toMatch(/queue_wait_s\.p50 at .*: it is [\d.]+, the maximum is 0\.001/)
    const [first, second] = await headroomJson<
      readonly { verdict: string; violations: readonly string[]; expected_digest: string | null }[]
    >(['sim', 'check', fine, failing], { code: 1 })
    expect(first).toMatchObject({ verdict: 'ok', violations: [] })
    expect(second).toMatchObject({ verdict: 'failed', expected_digest: null })
  })

  it('exits with 1 when the answer to an operator is not as expected', async () => {
    const file = scenario('operator', 'operator: [{ at: 1h, get: /api/v1/nodes/none, expect: 200 }]\n')
    const { code, stdout } = await headroom(['sim', 'check', file])
    expect({ code, says: stdout.includes('was answered 404, expected is 200') }).toEqual({
      code: 1,
      says: true,
    })
  })

  it('checks all files in scenarios/ with assertions or a digest by default', async () => {
    const empty = temporaryFolder()
    const { code, stderr } = await headroom(['sim', 'check'], { cwd: empty })
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'error: no scenarios/**/*.scenario.yaml found here: specify the scenarios\n',
    })
  })

  it('refuses a recorded result that is not JSON', async () => {
    const file = scenario('garbled', '')
    write(folder, 'garbled.expected.json', '{')
    const { code, stderr } = await headroom(['sim', 'check', file])
    expect({ code, says: stderr.includes('garbled.expected.json: cannot be read') }).toEqual({
      code: 2,
      says: true,
    })
  })
})
