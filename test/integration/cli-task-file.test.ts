/** Task files: `headroom run -f` and `headroom apply -f`, against a controller with a simulated fleet. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { taskFileSchema } from '../../cli/run/task-file.ts'
import { headroom, temporaryFolder, write, type Ended } from '../support/headroom-command.ts'
import { getJson, serve, WITHOUT_HISTORY } from '../support/served.ts'

interface Task {
  readonly id: string
  readonly name: string
  readonly vram_mib: number
  readonly priority: number
  readonly labels: Readonly<Record<string, string>>
  readonly max_runtime_seconds: number | null
  readonly command: readonly string[]
}

const FILE = `
name: train
vram_mib: 2Gi
priority: 3
labels: { team: vision, run: a }
max_runtime_seconds: 2h
command: [headroom, work, busy=10m]
`

describe('a task file', () => {
  const folder = temporaryFolder()
  const file = write(folder, 'train.task.yaml', FILE)
  let url: string
  const command = (...args: string[]): Promise<Ended> =>
    headroom([...args, '--server', url], { env: { HEADROOM_TOKEN: '' } })
  const named = async (name: string): Promise<readonly Task[]> =>
    (await getJson<{ items: readonly Task[] }>(`${url}/api/v1/tasks?q=${name}`)).items

  beforeAll(async () => {
    ;({ url } = await serve(folder, WITHOUT_HISTORY))
  })

  it('creates the task once, then changes what can be changed, and refuses the rest', async () => {
    expect((await command('apply', '-f', file, '--dry-run')).stdout).toMatch(/would (start|wait)/i)
    expect(await named('train')).toEqual([])
    expect((await command('apply', '-f', file)).stdout).toMatch(/: created\n$/)
    const [task] = await named('train')
    expect(task).toMatchObject({ vram_mib: 2048, priority: 3, max_runtime_seconds: 7200 })
    expect((await command('apply', '-f', file)).stdout).toBe(`train (${task?.id.slice(0, 8)}): unchanged\n`)

    const changed = write(
      folder,
      'b.yaml',
      FILE.replace('priority: 3', 'priority: 1').replace(', run: a', ''),
    )
    expect((await command('apply', '-f', changed, '--dry-run')).stdout).toBe(
      `train (${task?.id.slice(0, 8)}): would change priority, labels\n`,
    )
    expect(await named('train')).toMatchObject([{ priority: 3 }])
    expect((await command('apply', '-f', changed)).stdout).toBe(
      `train (${task?.id.slice(0, 8)}): changed priority, labels\n`,
    )
    expect(await named('train')).toMatchObject([{ id: task?.id, priority: 1, labels: { team: 'vision' } }])

    const other = write(
      folder,
      'c.yaml',
      FILE.replace('busy=10m', 'busy=9m').replace('priority: 3', 'priority: 0'),
    )
    expect(await command('apply', '-f', other)).toMatchObject({
      code: 5,
      stderr: expect.stringContaining(
        'command cannot be changed in an open task; nothing was changed',
      ) as string,
    })
    expect(await named('train')).toMatchObject([{ priority: 1 }])
  })

  it('is run by `headroom run -f`, without options that describe a task', async () => {
    const run = write(folder, 'run.yaml', FILE.replace('name: train', 'name: from-run'))
    expect(await command('run', '-f', run, '--detach')).toMatchObject({ code: 0 })
    expect(await named('from-run')).toMatchObject([{ command: ['headroom', 'work', 'busy=10m'] }])
    for (const more of [
      ['--vram', '1Gi'],
      ['--label', 'a=b'],
      ['--', 'true'],
    ])
      expect(await command('run', '-f', run, ...more)).toMatchObject({ code: 2 })
  })

  it('is refused with the name of the field that is wrong', async () => {
    for (const [text, words] of [
      ['name: x\nvram: 1Gi\n', 'unknown field "vram"'],
      ['name: x\nvram_mib: much\n', 'vram_mib must be'],
      ['- a\n', 'fields of one task'],
      ['vram_mib: 1Gi\n', 'requires the field `name`'],
      ['name: x\nvram_mib: 1Gi\npriority: 9\n', 'priority'],
    ] as const)
      expect(await command('apply', '-f', write(folder, 'bad.yaml', text))).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(words) as string,
      })
  })

  it('has a JSON Schema that accepts sizes and times with units, and no unknown field', () => {
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(taskFileSchema())
    expect(validate({ name: 'a', vram_mib: '16Gi', max_runtime_seconds: '2h', command: ['x'] })).toBe(true)
    expect(validate({ name: 'a', vram_mib: 16384, max_runtime_seconds: null })).toBe(true)
    expect(validate({ name: 'a', vram: '16Gi' })).toBe(false)
    expect(validate({ name: 'a', vram_mib: 0 })).toBe(false)
  })
})
