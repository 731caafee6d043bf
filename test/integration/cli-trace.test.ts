import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ACTIVITY_MODELS, TRACE_FORMATS } from '../../cli/trace.ts'
import { ACTIVITY_MODEL_NAMES } from '../../simulator/fleet/activity.ts'
import { fingerprintTrace } from '../../simulator/trace/fingerprint-file.ts'
import { IMPORTERS } from '../../simulator/trace/importers.ts'
import { headroom, headroomJson, temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const jobs = write(folder, 'jobs.csv', 'job_id,num_gpu,submit_time,duration\na,1,0,60\nb,0,10,60\nc,2,30,90\nd,1,60,0\ne,8,90,30\n')

interface Imported {
  readonly tasks: number
  readonly rows: number
  readonly sha256: string
  readonly dropped: Readonly<Record<string, number>>
}

describe('headroom trace', () => {
  it('says on stderr what it kept, and every dropped row by reason', async () => {
    const out = join(folder, 'a.trace.jsonl')
    const { code, stdout, stderr } = await headroom(['trace', 'import', 'tiresias', jobs, '-o', out, '--max-gpus', '4'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr.split('\n')).toEqual([
      `${out}: 2 tasks kept of 5 rows, 3 dropped`,
      '  dropped  1 no_gpu',
      '  dropped  1 zero_duration',
      '  dropped  1 too_many_gpus',
      '  made up  vram_mib, activity',
      '',
    ])
  })

  it('says the same as JSON on stdout, and takes its options', async () => {
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
    expect(told).toMatchObject({ file: out, tasks: 2, rows: 5, dropped: { no_gpu: 1, zero_duration: 1, outside_window: 1 } })
    const [header, first] = readFileSync(out, 'utf8')
      .split('\n')
      .map((line) => (line === '' ? null : (JSON.parse(line) as unknown)))
    expect(header).toMatchObject({ trace: 'jobs', importer: { options: { seed: 7, exclusive: true, activity_model: 'serving' } } })
    expect(first).toMatchObject({ id: 'c', at: 10_000, gpus: 2, gpu_mode: 'exclusive' })
    expect(await fingerprintTrace(out)).toEqual({ sha256: told.sha256, tasks: 2 })
  })

  it('a compressed trace has the identity of the plain one', async () => {
    const [plain, compressed] = [join(folder, 'c.trace.jsonl'), join(folder, 'c.trace.jsonl.gz')]
    const imported = await Promise.all(
      [plain, compressed].map((out) => headroomJson<Imported>(['trace', 'import', 'tiresias', jobs, '-o', out])),
    )
    expect(imported[1]?.sha256).toBe(imported[0]?.sha256)
    expect(await fingerprintTrace(compressed)).toEqual(await fingerprintTrace(plain))
  })

  it('inspects: facts for people, and the same as JSON', async () => {
    const out = join(folder, 'd.trace.jsonl')
    await headroom(['trace', 'import', 'tiresias', jobs, '-o', out])
    const { code, stdout } = await headroom(['trace', 'inspect', out])
    expect(code).toBe(0)
    expect(stdout).toContain('3 of 5 rows')
    expect(await headroomJson(['trace', 'inspect', out])).toMatchObject({ tasks: 3, rows: 5, gpus: { 1: 1, 2: 1, 8: 1 } })
  })

  it('offers every importer and every activity model that there is', () => {
    expect(TRACE_FORMATS).toEqual(IMPORTERS.map((importer) => importer.format))
    expect(ACTIVITY_MODELS).toEqual([...ACTIVITY_MODEL_NAMES])
  })
})
