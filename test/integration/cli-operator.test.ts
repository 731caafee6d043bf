/**
 * The operator commands in separate processes: with `headroom serve` and its simulated fleet, and with a fake
 * engine.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseDocument } from 'yaml'
import { createClient } from '../../clients/typescript/client.ts'
import { headroom as run, temporaryFolder, type Ended, UNMEASURED } from '../support/headroom-command.ts'
import { NODE_ID } from '../support/api-world.ts'
import { askedApi, askedServer, deadAddress, type Asked } from '../support/asked.ts'
import { serve, untilPresent, type Served } from '../support/served.ts'
import { WrittenOutput } from '../support/written-output.ts'

const folder = temporaryFolder()
let url = ''
const headroom = (...args: readonly string[]): Promise<Ended> =>
  run(args, { env: { VENDOR_CONTROLLER_URL: url, FORCE_COLOR: '1' } })

async function json<T>(...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await headroom(...args, '-o', 'json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as T
}

interface NamedTask {
  readonly id: string
  readonly name: string
  readonly state: string
}

describe('operator commands with a simulated fleet', { timeout: 240_000 }, () => {
  let served: Served
  let task: NamedTask

  beforeAll(async () => {
    served = await serve(`${folder}/data`)
    url = served.url
    await untilPresent(url)
    const body = JSON.stringify({ name: 'too-large', vram_mib: 16_000_000 })
    const answer = await fetch(`${url}/api/v1/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    task = (await answer.json()) as NamedTask
  })

  it('simulate the live state, predict the start of a task, and predict the effect of a change', async () => {
    const file = join(folder, 'now.scenario.json')
    expect(await headroom('snapshot', '--out', file)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('headroom sim run') as string,
    })
    const ran = await headroom('sim', 'run', file, '--until', '10m', '--json')
    expect({ code: ran.code, stderr: ran.stderr.includes('error') }).toEqual({ code: 0, stderr: false })
    expect(
      (JSON.parse(ran.stdout) as { readonly metrics: { readonly tasks: { readonly submitted: number } } })
        .metrics.tasks.submitted,
    ).toBeGreaterThan(5)
    expect((await headroom('snapshot')).stdout.slice(0, 2)).toBe('{\n')
    expect(await headroom('snapshot', '--out', join(folder, 'no/such/file'))).toMatchObject({ code: 2 })
    // A forecast may take a limited time, which is too little while other processes use the cores.
    await expect
      .poll(async () => (await headroom('task', 'explain', task.id)).stdout)
      .toMatch(/forecast +It is not expected to start within .*: it did not start in 100% of \d+ runs\.\n/)
    await expect
      .poll(async () => {
        const change = ['default_vram_overcommit_percent=60', '--dry-run']
        return (await headroom('config', 'set', ...change)).stdout
      })
      .toMatch(/forecast +Over the next .*, in \d+ pairs of runs: queue wait /)
    await expect
      .poll(async () => (await headroom('whatif', '--overcommit', '20,60')).stdout)
      .toMatch(
        /^Overcommit is 0% now; .*\n +20% {2}.* pending .*\n +60% {2}.* pending tasks? .*Over the next /,
      )
    expect(await headroom('whatif', '--pod-vram', '3Gi')).toMatchObject({ code: 2, stdout: '' })
  })

  it.each([
    { verb: ['status'], says: ['ready        yes', 'simulated fleet', '5 of 5 up, 16 of 16 GPUs'] },
    { verb: ['top'], says: ['headroom  20', '5/5 nodes', 'a100-0', 'STATE'] },
    { verb: ['node', 'list'], says: ['NAME', 'a100-0', 'l40s-1'] },
    { verb: ['node', 'show', 'a100-0'], says: ['a100-0', 'overcommit', '0% (global default)', 'A100-40'] },
    { verb: ['task', 'list'], says: ['ID', 'too-large', 'pending'] },
    { verb: ['group', 'list'], says: ['NAME'] },
    {
      verb: ['config', 'get'],
      says: ['default_vram_overcommit_percent  0', 'max_residency_seconds            null'],
    },
    { verb: ['events', '--task', 'too-large'], says: ['SEQ', 'EVENT', 'task_', 'too-large'] },
    { verb: ['why-pending'], says: ['NEVER_FITS', 'REASON', 'too-large'] },
    { verb: ['twin'], says: ['a score above 1 means drift', 'queue_wait_s'] },
  ])('$verb prints tables, and the same data for programs', async ({ verb, says }) => {
    const table = await headroom(...verb)
    expect(table).toMatchObject({ code: 0, stderr: '' })
    for (const word of says) expect(table.stdout).toContain(word)
    expect(table.stdout).not.toContain('\u001b')
    const wide = await headroom(...verb, '-o', 'wide')
    expect(wide.code).toBe(0)
    expect(wide.stdout.length).toBeGreaterThanOrEqual(table.stdout.length - 200)
    const value = await json<unknown>(...verb)
    const yaml = await headroom(...verb, '-o', 'yaml')
    expect(Object.keys(parseDocument(yaml.stdout).toJS() as object)).toEqual(Object.keys(value as object))
    const lines = (await headroom(...verb, '-o', 'jsonl')).stdout.split('\n').filter((line) => line !== '')
    expect(lines).toHaveLength(Array.isArray(value) ? value.length : 1)
    for (const line of lines) expect(typeof JSON.parse(line)).toBe('object')
  })

  it('show, explain, change and cancel a task, and refuse a second cancellation', async () => {
    expect((await headroom('task', 'show', task.id)).stdout).toMatch(
      /name +too-large\nstate +pending\nwhy .*16,000,000/,
    )
    expect((await headroom('task', 'explain', task.id)).stdout).toMatch(
      new RegExp(`^task +too-large \\(${task.id.slice(0, 8)}\\)\n[^]*reason +NEVER_FITS\n`),
    )
    expect((await headroom('why-pending', task.id)).stdout).toMatch(/reason +NEVER_FITS\n/)
    expect(await json('task', 'set', task.id, 'priority=P0', 'labels.team=x', 'vram_mib=1Ti')).toMatchObject({
      priority: 0,
      labels: { team: 'x' },
      vram_mib: 1_048_576,
    })
    expect((await headroom('task', 'hold', task.id)).stdout).toBe(
      `too-large (${task.id.slice(0, 8)}): on hold; not placed until released\n`,
    )
    expect((await headroom('task', 'explain', task.id)).stdout).toMatch(/reason +HELD\n/)
    expect((await headroom('task', 'release', task.id)).stdout).toBe(
      `too-large (${task.id.slice(0, 8)}): released\n`,
    )
    expect(await headroom('task', 'swap-out', task.id)).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('is pending'),
    })
    expect((await headroom('task', 'swap-in', 'nope')).code).toBe(4)
    expect(await headroom('task', 'cancel', task.id)).toEqual({
      code: 0,
      stdout: `too-large (${task.id.slice(0, 8)}): cancelled\n`,
      stderr: '',
    })
    const again = await headroom('task', 'cancel', task.id)
    expect(again).toMatchObject({ code: 5, stdout: '' })
    expect(again.stderr).toMatch(/^headroom: .*cancelled.*\n$/)
    const two = await headroom('task', 'cancel', task.id, 'nope')
    expect(two.code).toBe(5)
    expect(two.stderr).toContain('nope: Task "nope" not found.')
  })

  it('requeue a running task, and refuse to assume that a reachable server has lost it', async () => {
    const [running] = await json<NamedTask[]>('task', 'list', '--state', 'running', '--limit', '1')
    const id = running?.id ?? expect.unreachable()
    expect(await headroom('task', 'requeue', id, '--confirm-fenced')).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('omit confirm_fenced') as string,
    })
    expect(await headroom('task', 'requeue', id)).toEqual({
      code: 0,
      stdout: `${running?.name} (${id.slice(0, 8)}): requeued as soon as its server has stopped it\n`,
      stderr: '',
    })
    expect((await headroom('task', 'requeue', task.id)).code).toBe(4)
  })

  it('filter and limit lists', async () => {
    const pending = await json<NamedTask[]>('task', 'list', '--state', 'pending', '--limit', '3')
    expect(pending.every(({ state }) => state === 'pending')).toBe(true)
    expect(await json<NamedTask[]>('task', 'list', '--limit', '7')).toHaveLength(7)
    const onNode = await json<{ placement: { node_name: string } }[]>(
      'task',
      'list',
      '--state',
      'running',
      '--node',
      'a100-1',
      '--priority',
      'P2',
    )
    expect(onNode.length).toBeGreaterThan(0)
    expect(new Set(onNode.map(({ placement }) => placement.node_name))).toEqual(new Set(['a100-1']))
  })

  it('configure and cordon a node, and put it into a group', async () => {
    const overcommit = (percent: number | null) => ({ overcommit: { override_percent: percent } })
    expect(await json('node', 'set', 'l40s-0', 'overcommit=30')).toMatchObject(overcommit(30))
    expect(await json('node', 'set', 'l40s-0', 'reserve=4Gi')).toMatchObject({
      ...overcommit(30),
      safety_reserve_mib: 4096,
    })
    expect(await json('node', 'set', 'l40s-0', 'overcommit=null')).toMatchObject({
      ...overcommit(null),
      safety_reserve_mib: 4096,
    })
    const tried = await headroom('node', 'set', 'l40s-0', 'overcommit=60', '--dry-run')
    expect(tried.stdout).toMatch(
      /^dry run +nothing was changed\ncommit limit +[\d,]+ → [\d,]+ MiB on 1 node\n/,
    )
    expect(await json('node', 'show', 'l40s-0')).toMatchObject(overcommit(null))
    expect(await json('node', 'cordon', 'l40s-0')).toMatchObject({ cordoned: true })
    expect(await json('node', 'uncordon', 'l40s-0')).toMatchObject({ cordoned: false })
    expect((await headroom('node', 'drain', 'l40s-0', '--requeue', '--after', '1h')).stdout).toMatch(
      /^l40s-0: draining, /,
    )
    expect((await headroom('node', 'list')).stdout).toMatch(/l40s-0 +up,drain(ing|ed) /)
    expect((await headroom('node', 'drain', 'l40s-0', '--after', '1h')).code).toBe(2)
    expect(await json('node', 'uncordon', 'l40s-0')).toMatchObject({ cordoned: false, drain: null })
    expect(await headroom('node', 'remove', 'l40s-0')).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('is up: stop its server first') as string,
    })
    expect((await headroom('group', 'create', 'team a', '--node', 'l40s-0', '--dry-run')).stdout).toMatch(
      /^leaves the common pool +1 node, /,
    )
    expect((await headroom('group', 'show', 'team a')).code).toBe(4)
    expect((await headroom('run', '--vram', '1Gi', '--dry-run', '--', 'true')).stdout).toMatch(
      /^It would (start|wait)/,
    )
    expect(
      await json('group', 'create', 'team a', '--node', 'l40s-0', '--description', 'ours'),
    ).toMatchObject({ id: 'team a' })
    expect((await headroom('group', 'create', 'team a')).code).toBe(5)
    expect(await json<{ node_ids: string[] }>('group', 'add-node', 'team a', 'l40s-1')).toMatchObject({
      id: 'team a',
    })
    expect((await headroom('group', 'remove-node', 'team a', 'l40s-1')).stdout).toBe(
      'l40s-1: removed from group team a\n',
    )
    expect((await headroom('group', 'remove-node', 'team a', 'l40s-1')).code).toBe(4)
    expect((await json<{ node_ids: string[] }>('group', 'show', 'team a')).node_ids).toHaveLength(1)
    expect((await headroom('group', 'delete', 'team a')).stdout).toBe('team a: deleted\n')
  })

  it('read and change settings, with units', async () => {
    expect(
      await json(
        'config',
        'set',
        'idle_swap_out_seconds=10m',
        'safety_reserve_mib=1Gi',
        'max_residency_seconds=null',
      ),
    ).toMatchObject({
      idle_swap_out_seconds: 600,
      safety_reserve_mib: 1024,
      max_residency_seconds: null,
    })
    expect(await headroom('config', 'get', 'idle_swap_out_seconds')).toEqual({
      code: 0,
      stdout: '600\n',
      stderr: '',
    })
    expect((await headroom('config', 'get', 'placement_strategy')).stdout).toBe('best_fit\n')
  })

  it('follow events until Ctrl-C, which is not an error', async () => {
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, '../../cli/main.ts'), 'events', '-f', '-o', 'jsonl', '--last', '1'],
      {
        env: { ...process.env, ...UNMEASURED, VENDOR_CONTROLLER_URL: url },
      },
    )
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
    const seen = new Promise<string>((resolve) => {
      let text = ''
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        if (text.includes('\n') && !text.includes('group_changed')) void headroom('group', 'create', 'seen')
        if (text.includes('group_changed')) resolve(text)
      })
    })
    expect(await seen).toContain('"seen"')
    child.kill('SIGINT')
    expect(await ended).toBe(0)
  })
})

describe('operator commands with a fake engine', { timeout: 300_000 }, () => {
  let api: Asked
  const HOSTILE = 'a\u009b31m\u202eb'

  beforeAll(async () => {
    api = await askedApi({
      readiness: () => [{ name: 'store', ok: false, detail: 'the store has\u0007 failed' }],
    })
    await api.world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 49_140 })
    await api.world.addNode({ id: '\u001b]0;x\u0007', gpus: 1, physicalMib: 49_140 })
    for (const node of api.world.nodes.values()) node.name = HOSTILE
    url = api.url
    const body = JSON.stringify({ name: HOSTILE, vram_mib: 1, labels: { [HOSTILE]: `${HOSTILE}\u001b[2J` } })
    await fetch(`${url}/api/v1/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
  })

  it.each(['table', 'wide', 'json', 'jsonl', 'yaml'])(
    'never print stored text raw to the terminal (%s)',
    async (format) => {
      const [id] = [...api.world.open.keys()]
      for (const verb of [
        ['status'],
        ['top'],
        ['node', 'list'],
        ['task', 'list'],
        ['task', 'show', id ?? ''],
        ['why-pending'],
      ]) {
        const { code, stdout, stderr } = await headroom(...verb, '-o', format)
        expect(code).toBe(verb[0] === 'status' ? 1 : 0)
        expect(stdout.length).toBeGreaterThan(10)
        expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/)
      }
    },
  )

  it('print the output of a task unchanged, by stream and offset, and follow it to its end', async () => {
    const output = new WrittenOutput()
    const { world, url: server } = await askedApi({ logs: output })
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 49_140 })
    const { id } = await createClient({ url: server }).tasks.submit({ vram_mib: 1, command: ['x'] })
    expect(await headroom('task', 'logs', id, '--server', server)).toMatchObject({ code: 5, stdout: '' })
    const task = world.open.get(id)
    if (task !== undefined) task.attempt = 1
    world.place(id, NODE_ID)
    const text = `${'line\n'.repeat(60_000)}\u001b[0m`
    output.write(id, 'stdout', text)
    output.write(id, 'stderr', 'oh')
    expect(await headroom('task', 'logs', id, '--server', server)).toEqual({
      code: 0,
      stdout: text,
      stderr: 'oh',
    })
    expect((await headroom('task', 'logs', id, '--server', server, '--stream', 'stdout')).stderr).toBe('')
    expect(await headroom('task', 'logs', id, '--server', server, '--offset', '1')).toMatchObject({
      code: 2,
      stdout: '',
    })
    expect(
      (await headroom('task', 'logs', id, '--server', server, '--stream', 'stderr', '--offset', '1')).stdout,
    ).toBe('h')
    output.end(id)
    expect(
      (
        await headroom(
          'task',
          'logs',
          id,
          '--server',
          server,
          '-f',
          '--stream',
          'stdout',
          '--offset',
          '299990',
        )
      ).stdout,
    ).toBe(text.slice(299_990))
    expect(await headroom('task', 'logs', id, '--server', server, '-f')).toEqual({
      code: 0,
      stdout: text,
      stderr: 'oh',
    })
    expect((await headroom('task', 'logs', 'none', '--server', server)).code).toBe(4)
  })

  it('refuse a name that two nodes have', async () => {
    const { code, stdout, stderr } = await headroom('node', 'show', HOSTILE)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/2 nodes are named/)
    expect((await headroom('node', 'show', NODE_ID)).code).toBe(0)
  })

  it('remove a node', async () => {
    expect((await headroom('node', 'remove', NODE_ID)).stdout).toMatch(/: removed; .*\n$/)
    expect((await headroom('node', 'remove', NODE_ID)).code).toBe(4)
  })
})

describe('a failed command exits with a code for its reason, and one line', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    url = (await askedApi()).url
  })

  it.each([
    {
      why: 'a wrong format',
      args: ['node', 'list', '-o', 'xml'],
      code: 2,
      says: /table, wide, json, jsonl, yaml/,
    },
    { why: 'a wrong priority', args: ['task', 'list', '--priority', 'P7'], code: 2, says: /P0 \(highest\)/ },
    { why: 'a wrong state', args: ['task', 'list', '--state', 'lots'], code: 2, says: /pending, running/ },
    { why: 'a wrong limit', args: ['task', 'list', '--limit', '0'], code: 2, says: /integer from 1/ },
    {
      why: 'an interval that is too short',
      args: ['top', '--interval', '1ms'],
      code: 2,
      says: /between 100ms and 1h/,
    },
    { why: 'a missing argument', args: ['task', 'show'], code: 2, says: /missing required argument 'task'/ },
    { why: 'an unknown verb', args: ['task', 'shw', 'x'], code: 2, says: /Did you mean show/ },
    { why: 'no pair', args: ['config', 'set', 'x'], code: 2, says: /must be NAME=VALUE/ },
    { why: 'a duplicate pair', args: ['config', 'set', 'a=1', 'a=2'], code: 2, says: /a is specified twice/ },
    { why: 'an unknown setting', args: ['config', 'set', 'foo=1'], code: 2, says: /foo is unknown/ },
    {
      why: 'an unknown setting to read',
      args: ['config', 'get', 'foo'],
      code: 2,
      says: /unknown setting "foo"/,
    },
    {
      why: 'a setting out of range',
      args: ['config', 'set', 'default_vram_overcommit_percent=1001'],
      code: 2,
      says: /0 to 1000, got 1001/,
    },
    {
      why: 'an invalid time',
      args: ['config', 'set', 'idle_swap_out_seconds=5x'],
      code: 2,
      says: /idle_swap_out_seconds must be/,
    },
    {
      why: 'an invalid size',
      args: ['config', 'set', 'safety_reserve_mib=2GiB'],
      code: 2,
      says: /8Gi, 8192Mi, 8G or 8000M/,
    },
    {
      why: 'a setting that nodes do not have',
      args: ['node', 'set', 'x', 'colour=1'],
      code: 2,
      says: /use overcommit or reserve/,
    },
    { why: 'an unknown node', args: ['node', 'show', 'x'], code: 4, says: /Node "x" not found/ },
    { why: 'an unknown task', args: ['task', 'show', 'x'], code: 4, says: /Task "x" not found\./ },
    { why: 'an unknown task to explain', args: ['why-pending', 'x'], code: 4, says: /Task "x" not found\./ },
    { why: 'an unknown group', args: ['group', 'delete', 'x'], code: 4, says: /Group "x" not found/ },
    {
      why: 'a bad address',
      args: ['status', '--server', 'ftp://x'],
      code: 2,
      says: /--server: "ftp:\/\/x" is not the address/,
    },
  ])('$why', async ({ args, code, says }) => {
    const ended = await headroom(...args)
    expect(ended).toMatchObject({ code, stdout: '' })
    expect(ended.stderr).toMatch(says)
    expect(ended.stderr.trimEnd().split('\n')).toHaveLength(1)
  })

  it('exits with 3 if no controller answers at the address', async () => {
    const nobody = await deadAddress()
    const other = await askedServer((_request, response) => response.end('hello'))
    const down = await headroom('node', 'list', '--server', nobody)
    expect(down).toEqual({
      code: 3,
      stdout: '',
      stderr:
        `headroom: cannot reach the controller at ${nobody}: connection refused. Is the controller ` +
        'running?\n',
    })
    const strange = await headroom('status', '--server', other)
    expect(strange).toMatchObject({ code: 3, stdout: '' })
    expect(strange.stderr).toMatch(/Is this the address of a controller\?\n$/)
  })
})
