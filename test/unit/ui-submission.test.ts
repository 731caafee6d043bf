/** The form of a submission: words of a command, the request, and the same as a command line. */
import { describe, expect, test } from 'vitest'
import { type TaskBody, TaskRequestSchema } from '../../controller/api/tasks/schema.ts'
import { commandLineOf, draftOf, NEW_DRAFT, requestOf, wordsOf } from '../../ui/pages/tasks/submission.ts'

describe('a command as text', () => {
  test.each([
    ['python train.py', ['python', 'train.py']],
    ['  a   b ', ['a', 'b']],
    [`echo "two words" 'it''s'`, ['echo', 'two words', 'its']],
    [`echo "a \\"b\\"" c\\ d`, ['echo', 'a "b"', 'c d']],
    [`x ''`, ['x', '']],
    [`$HOME \`x\` ; rm`, ['$HOME', '`x`', ';', 'rm']],
    ['', []],
  ])('%j has the words %j', (text, words) => {
    expect(wordsOf(text)).toEqual(words)
  })

  test('An open quote is not a command', () => {
    expect(wordsOf('echo "a')).toBeNull()
    expect(requestOf({ ...NEW_DRAFT, command: "echo 'a" })).toEqual({
      missing: 'Close the open quote in the command.',
    })
  })
})

test('The request has whole MiB and only the groups that are named', () => {
  const draft = { ...NEW_DRAFT, name: ' a ', command: 'x', vramGib: '1.5', groups: 'vision, b', noswap: true }
  expect(requestOf(draft)).toEqual({
    body: {
      name: 'a',
      command: ['x'],
      vram_mib: 1536,
      gpu_count: 1,
      priority: 2,
      noswap: 1,
      groups: ['vision', 'b'],
    },
  })
})

test.each([
  [{ vramGib: '' }, /VRAM/],
  [{ vramGib: '-1' }, /VRAM/],
  [{ gpus: '0' }, /number of GPUs/],
  [{ gpus: '1.5' }, /number of GPUs/],
])('%j is not sent', (change, missing) => {
  expect(requestOf({ ...NEW_DRAFT, ...change })).toEqual({
    missing: expect.stringMatching(missing) as string,
  })
})

test('The command line quotes what a shell would change', () => {
  const draft = { ...NEW_DRAFT, command: `python "my file.py" --x='a'`, priority: '0', name: "it's" }
  expect(commandLineOf(draft)).toBe(
    `headroom run --detach --vram 16384Mi --priority P0 --name 'it'\\''s' -- python 'my file.py' --x=a`,
  )
})

describe('a clone', () => {
  const task = {
    name: 'train',
    command: ['python', 'my train.py'],
    vram_mib: 20_480,
    gpu_count: 2,
    gpu_mode: 'shared',
    priority: 1,
    noswap: 1,
    groups: ['vision'],
    labels: { team: 'a b' },
    image: 'pytorch:2',
    max_requeues: null,
    mounts: ['data'],
    on_node_loss: 'requeue',
    ports: [{ name: 'web', target: 8000, protocol: 'http' }],
    workdir: null,
    secrets: {},
    env_names: ['TOKEN'],
  } as unknown as TaskBody

  test('asks for the same as the task, without what the controller takes by default', () => {
    expect(requestOf(draftOf(task))).toEqual({
      body: {
        name: 'train',
        command: ['python', 'my train.py'],
        vram_mib: 20_480,
        gpu_count: 2,
        priority: 1,
        noswap: 1,
        groups: ['vision'],
        labels: { team: 'a b' },
        image: 'pytorch:2',
        max_requeues: null,
        mounts: ['data'],
        on_node_loss: 'requeue',
        ports: [{ name: 'web', target: 8000, protocol: 'http' }],
      },
    })
  })

  test('has a command line with the same fields', () => {
    expect(commandLineOf(draftOf(task))).toBe(
      `headroom run --detach --vram 20480Mi --gpus 2 --priority P1 --noswap --group vision --name train ` +
        `--label 'team=a b' --image pytorch:2 --mount data --on-node-loss requeue --max-requeues none ` +
        `--port web=8000/http -- python 'my train.py'`,
    )
  })

  test('keeps every field of the request that has no input, except the values of variables', () => {
    const fields = Object.keys(TaskRequestSchema.properties)
    const full = { ...Object.fromEntries(fields.map((field) => [field, 7])), ...task } as unknown as TaskBody
    const withInput = ['name', 'command', 'vram_mib', 'gpu_count', 'priority', 'noswap', 'groups']
    const { more } = draftOf({ ...full, gpu_mode: 'exclusive', workdir: 'a', secrets: { TOKEN: 'a' } })
    expect(new Set(Object.keys(more))).toEqual(
      new Set(fields.filter((field) => field !== 'env' && !withInput.includes(field))),
    )
  })

  test('of an exclusive task needs no VRAM', () => {
    const whole = { ...task, gpu_mode: 'exclusive', vram_mib: null } as TaskBody
    const asked = requestOf(draftOf(whole))
    expect('body' in asked && asked.body).toMatchObject({ gpu_mode: 'exclusive' })
    expect('body' in asked && 'vram_mib' in asked.body).toBe(false)
  })
})
