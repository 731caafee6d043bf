/**
 * Every command that writes, with an output path that is not writable: one line with option and path, exit
 * code 2, and no file left behind.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, openSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { busyScenario, headroom, temporaryFolder, UNMEASURED, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const fresh = (): string => mkdtempSync(join(folder, 'x-'))
const scenario = write(folder, 'busy.scenario.yaml', busyScenario().replace('until: 6h', 'until: 30m'))
const csv = write(folder, 'jobs.csv', 'job_id,num_gpu,submit_time,duration\na,1,0,60\nb,2,30,90\n')
const trace = write(
  folder,
  'a.trace.jsonl',
  '{"trace":"x","version":1,"t_unit":"ms"}\n' +
    '{"id":"a","at":0,"gpus":1,"vram_mib":100,"work":{"kind":"duration","ms":10000}}\n',
)

const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  'sim run': ['sim', 'run', scenario, '--out'],
  'sim sweep': ['sim', 'sweep', scenario, '--overcommit', '0', '--out'],
  'sim replay': [
    'sim',
    'replay',
    trace,
    '--nodes',
    '1',
    '--gpus-per-node',
    '1',
    '--vram-mib',
    '16384',
    '--out',
  ],
  'sim fuzz': ['sim', 'fuzz', '--seeds', '1', '--out'],
}
const FILES: Readonly<Record<string, readonly string[]>> = {
  'trace import': ['trace', 'import', 'tiresias', csv, '--vram-mib', '8000', '-o'],
  'sim record': ['sim', 'record', '--data', folder, '--out'],
  'token generate': ['token', 'generate', '--out'],
  'nats config': ['nats', 'config', '-o'],
  snapshot: ['snapshot', '--server', 'http://127.0.0.1:9', '--out'],
}

describe.each(Object.entries({ ...FOLDERS, ...FILES }))('%s', (name, args) => {
  // In /proc, Node's mkdir does not end.
  it.each([...(name in FOLDERS ? ['/proc/none'] : []), '/proc/none/below', 'file/below'])(
    'with output to %s',
    async (path) => {
      const cwd = fresh()
      writeFileSync(join(cwd, 'file'), 'x')
      const { code, stdout, stderr } = await headroom([...args, path], { cwd })
      expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(
        new RegExp(`^error: --out(put)? ${path}: cannot be (created|written to): .+\\n$`),
      )
      expect(readdirSync(cwd), name).toEqual(['file'])
    },
  )
})

describe('a device or a folder instead of a file', () => {
  it('trace import writes to a device without replacing it', async () => {
    const cwd = fresh()
    symlinkSync('/dev/full', join(cwd, 'full.trace.jsonl'))
    symlinkSync('/dev/null', join(cwd, 'null.trace.jsonl'))
    const [full, none] = [
      [...(FILES['trace import'] as string[]), 'full.trace.jsonl'],
      [...(FILES['trace import'] as string[]), 'null.trace.jsonl'],
    ]
    expect(await headroom(full, { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--output full.trace.jsonl: cannot be written to: ENOSPC') as string,
    })
    expect((await headroom(none, { cwd })).code).toBe(0)
    expect(readdirSync(cwd, { withFileTypes: true }).map((each) => each.isSymbolicLink())).toEqual([
      true,
      true,
    ])
  })

  it.each(Object.entries(FILES).filter(([name]) => name !== 'token generate'))(
    '%s refuses a folder',
    async (_, args) => {
      const cwd = fresh()
      mkdirSync(join(cwd, 'sub'))
      const { code, stderr } = await headroom([...args, 'sub'], { cwd })
      expect(code).toBe(2)
      expect(stderr).toMatch(/^error: --out(put)? sub: cannot be written to: sub is a folder\n$/)
      expect(readdirSync(cwd)).toEqual(['sub'])
    },
  )

  it('sim run and sim sweep report a full disk and keep complete files', async () => {
    const cwd = fresh()
    mkdirSync(join(cwd, 'run'))
    symlinkSync('/dev/full', join(cwd, 'run/journal.jsonl.new'))
    const run = await headroom(['sim', 'run', scenario, '--out', 'run'], { cwd })
    expect([run.code, run.stderr]).toEqual([
      2,
      'error: --out run: cannot be written to: ENOSPC: no space left on device, write\n',
    ])
    expect(readdirSync(join(cwd, 'run'))).toEqual([])

    mkdirSync(join(cwd, 'plan'))
    symlinkSync('/dev/full', join(cwd, 'plan/result.json.new'))
    const sweep = await headroom(['sim', 'sweep', scenario, '--overcommit', '0,50', '--out', 'plan'], { cwd })
    expect([sweep.code, sweep.stderr.split('\n').at(-2)]).toEqual([
      2,
      'error: --out plan: cannot be written to: ENOSPC: no space left on device, write',
    ])
    expect(readdirSync(join(cwd, 'plan'))).toEqual([
      'report.html',
      'runs',
      'runs.csv',
      'summary.csv',
      'timing.json',
    ])
    const again = await headroom(['sim', 'sweep', scenario, '--overcommit', '0,50', '--out', 'plan'], { cwd })
    expect([again.code, again.stderr]).toEqual([0, '2 of 2 runs already exist in plan\n'])
  })

  it('sim check --update reports the file of a scenario that is not writable', async () => {
    const cwd = fresh()
    const mine = write(cwd, 'mine.scenario.yaml', busyScenario().replace('until: 6h', 'until: 5m'))
    mkdirSync(join(cwd, 'mine.expected.json.new'))
    const { code, stderr } = await headroom(['sim', 'check', '--update', mine], { cwd })
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^error: --update .*mine\.expected\.json: cannot be written to: EISDIR/),
    ])
  })
})

describe('standard output', () => {
  it('that is not writable is reported in one line', () => {
    const main = join(import.meta.dirname, '../../cli/main.ts')
    const { status, stderr } = spawnSync(process.execPath, [main, 'sim', 'run', scenario, '--json'], {
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
      encoding: 'utf8',
      env: { ...process.env, ...UNMEASURED },
    })
    expect([status, stderr]).toEqual([
      1,
      'headroom: cannot write to standard output: ENOSPC: no space left on device, write\n',
    ])
  })
})
