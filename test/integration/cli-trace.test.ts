import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { fingerprintTrace } from '../../simulator/trace/fingerprint-file.ts'
import { headroom, headroomJson, temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const jobs = write(
  folder,
  'jobs.csv',
  'job_id,num_gpu,submit_time,duration\na,1,0,60\nb,0,10,60\nc,2,30,90\nd,1,60,0\ne,8,90,30\n',
)

interface Imported {
  readonly tasks: number
  readonly rows: number
  readonly sha256: string
  readonly dropped: Readonly<Record<string, number>>
}

describe('headroom trace', () => {
  it('reports the kept rows, and the dropped rows by reason', async () => {
    const out = join(folder, 'a.trace.jsonl')
    const { code, stdout, stderr } = await headroom([
      'trace',
      'import',
      'tiresias',
      jobs,
      '-o',
      out,
      '--max-gpus',
      '4',
    ])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n')).toEqual([
      `${out}: 2 tasks from 5 rows, 3 dropped`,
      '  dropped  1 no_gpu: num_gpu is 0',
      '  dropped  1 zero_duration: duration is 0',
      '  dropped  1 too_many_gpus: requests more than `--max-gpus`',
      '  generated  gpu_mode, activity',
      '  Tasks with unknown VRAM use whole GPUs. Use --vram-mib, --vram-map or --shared to let them share ' +
        'GPUs.',
      '',
    ])
  })

  it('prints the same as JSON, and applies its options', async () => {
    const out = join(folder, 'b.trace.jsonl')
    const options = [
      '--exclusive',
      '--activity-model',
      'serving',
      '--seed',
      '7',
      '--time-scale',
      '0.5',
      '--from',
      '10s',
      '--to',
      '2m',
      '--name',
      'jobs',
    ]
    const told = await headroomJson<Imported>(['trace', 'import', 'tiresias', jobs, '-o', out, ...options])
    expect(told).toMatchObject({
      file: out,
      tasks: 2,
      rows: 5,
      dropped: { no_gpu: 1, zero_duration: 1, outside_window: 1 },
    })
    const [header, first] = readFileSync(out, 'utf8')
      .split('\n')
      .map((line) => (line === '' ? null : (JSON.parse(line) as unknown)))
    expect(header).toMatchObject({
      trace: 'jobs',
      importer: { options: { seed: 7, exclusive: true, activity_model: 'serving' } },
    })
    expect(first).toMatchObject({ id: 'c', at: 10_000, gpus: 2, gpu_mode: 'exclusive' })
    expect(await fingerprintTrace(out)).toEqual({ sha256: told.sha256, tasks: 2 })
  })

  it('gives a compressed trace the identity of the plain one', async () => {
    const [plain, compressed] = [join(folder, 'c.trace.jsonl'), join(folder, 'c.trace.jsonl.gz')]
    const imported = await Promise.all(
      [plain, compressed].map((out) =>
        headroomJson<Imported>(['trace', 'import', 'tiresias', jobs, '-o', out]),
      ),
    )
    expect(imported[1]?.sha256).toBe(imported[0]?.sha256)
    expect(await fingerprintTrace(compressed)).toEqual(await fingerprintTrace(plain))
  })

  it('prints facts about a trace, also as JSON', async () => {
    const out = join(folder, 'd.trace.jsonl')
    await headroom(['trace', 'import', 'tiresias', jobs, '-o', out])
    const { code, stdout } = await headroom(['trace', 'inspect', out])
    expect(code).toBe(0)
    expect(stdout).toContain('3 of 5 rows')
    expect(await headroomJson(['trace', 'inspect', out])).toMatchObject({
      tasks: 3,
      rows: 5,
      gpus: { 1: 1, 2: 1, 8: 1 },
    })
  })

  it.each(['jobs.csv', 'jobs.csv.gz'])('reads %s from a pipe', async (name) => {
    const pipe = join(folder, `${name}.pipe`)
    execFileSync('mkfifo', [pipe])
    const bytes = Buffer.from('job_id,num_gpu,submit_time,duration\na,1,0,60\nb,2,30,90\n')
    const writing = writeFile(pipe, name.endsWith('.gz') ? gzipSync(bytes) : bytes)
    const out = join(folder, `${name}.trace.jsonl`)
    const { code, stdout } = await headroom([
      'trace',
      'import',
      'tiresias',
      pipe,
      '-o',
      out,
      '--vram-mib',
      '8000',
    ])
    await writing
    expect([code, stdout.split('\n')[0]]).toEqual([0, `${out}: 2 tasks from 2 rows, 0 dropped`])
    const { code: refused, stderr } = await headroom([
      'sim',
      'replay',
      pipe,
      '--nodes',
      '1',
      '--gpus-per-node',
      '1',
      '--vram-mib',
      '9000',
    ])
    expect([refused, stderr]).toEqual([
      2,
      `error: ${pipe}: this file cannot be read twice. Save it as a regular file first.\n`,
    ])
  })

  it('refuses an invalid format, option or file in one line', async () => {
    const out = join(folder, 'no.trace.jsonl')
    const refused = async (...args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await headroom(['trace', 'import', ...args])
      expect({ args, code, stdout, lines: stderr.split('\n').length }).toEqual({
        args,
        code: 2,
        stdout: '',
        lines: 2,
      })
      return stderr
    }
    expect(await refused('slrum', jobs, '-o', out)).toContain(
      'Did you mean slurm? Use one of headroom, csv, slurm,',
    )
    expect(await refused('tiresias', jobs, '-o', out, '--servers', '4')).toContain(
      '--servers applies to azure-llm, not to tiresias',
    )
    expect(await refused('csv', jobs, '-o', out, '--delimiter', 'ab')).toContain(
      'It must be one character, or tab.',
    )
    expect(await refused('csv', jobs, '-o', out, '--columns', 'at')).toContain(
      'columns: "at" must be KEY=VALUE',
    )
    expect(await refused('slurm', jobs, '-o', out)).toContain(
      'jobs.csv:1: has no column Submit, JobIDRaw or JobID,',
    )
    expect(await refused('tiresias', join(folder, 'none.csv'), '-o', out)).toContain('none.csv: no such file')
    expect(await refused('tiresias', jobs, '-o', join(folder, 'none/x.trace.jsonl'))).toContain(
      'x.trace.jsonl: cannot be written to: ',
    )
    expect(await refused('tiresias', jobs, '-o', out, '--from', '1h', '--to', '1m')).toContain(
      '--to must be after --from',
    )
    expect(await refused('tiresias', jobs, '-o', out, '--shared', '--exclusive')).toContain(
      "cannot be used with option '--shared'",
    )
    expect(await refused('swf', jobs, '-o', out)).toContain(
      'jobs.csv: keeps no row of 6: 6 wrong_number_of_fields',
    )
    expect(existsSync(out)).toBe(false)
  })

  it('accepts the options of its format', async () => {
    const table = write(folder, 'table.csv', 'when\tlong\tname\n1000\t500\ta\n')
    const out = join(folder, 'e.trace.jsonl')
    const options = ['--columns', 'at=when,duration=long,id=name', '--delimiter', 'tab', '--time-unit', 'ms']
    expect(await headroomJson(['trace', 'import', 'csv', table, '-o', out, ...options])).toMatchObject({
      tasks: 1,
      rows: 1,
    })
    expect(readFileSync(out, 'utf8')).toContain(
      '"id":"a","at":0,"gpus":1,"vram_mib":0,"gpu_mode":"exclusive"',
    )
  })

  it('imports the journal of a simulation as a workload with equal work', async () => {
    const scenario = write(
      folder,
      'own.scenario.yaml',
      `scenario: own
version: 1
seed: 1
fleet:
  - { count: 1, name: "n-{i}", gpus: 1, gpu: { model: A100-40, vram_mib: 40960, swap: stock-driver } }
config: { default_vram_overcommit_percent: 100, idle_swap_out_seconds: 60 }
workload:
  - { task: { id: first, at: 0s, vram_mib: 30000,
      work: { kind: phases, phases: [[60000, 900000], [60000, 0]] } } }
  - { task: { id: second, at: 2m, vram_mib: 30000, priority: 1, run: 20m } }
`,
    )
    const [ran, out] = [join(folder, 'ran'), join(folder, 'own.trace.jsonl')]
    expect(await headroom(['sim', 'run', scenario, '--out', ran])).toMatchObject({ code: 0 })
    const told = await headroomJson<Imported>([
      'trace',
      'import',
      'headroom',
      join(ran, 'journal.jsonl'),
      '-o',
      out,
    ])
    expect(told).toMatchObject({ tasks: 2 })
    const [, first, second] = readFileSync(out, 'utf8')
      .split('\n')
      .slice(0, 3)
      .map(
        (line) =>
          JSON.parse(line) as {
            id: string
            at: number
            work: { phases: ReadonlyArray<readonly [number, number]> }
          },
      )
    expect([first?.id, second?.id, second?.at]).toEqual(['first', 'second', 120_000])
    expect(second?.work.phases).toEqual([[1_200_000, 0]])
    // It was swapped out after a minute of idleness and requested its return with new work; its waiting time
    // is left out.
    expect(first?.work.phases).toEqual([[120_000, 840_000], [60_000, 0]]) // prettier-ignore
  })
})
