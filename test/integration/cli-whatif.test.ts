import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { headroom, headroomJson, temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const node = {
  kind: 'Node',
  metadata: {
    name: 'gpu-1',
    labels: {
      'nvidia.com/gpu.count': '1',
      'nvidia.com/gpu.memory': '24576',
      'nvidia.com/gpu.product': 'A10',
    },
  },
}
const pod = (name: string) => ({
  metadata: { name, namespace: 'ml', annotations: { 'headroom.dev/pod-vram': '14Gi' } },
  spec: { containers: [{ name: 'main' }] },
  status: { phase: 'Running' },
})
const nodes = write(folder, 'nodes.json', JSON.stringify({ kind: 'List', items: [node] }))
/** As the API server lists them: without a kind of each. */
const pods = write(folder, 'pods.json', JSON.stringify({ kind: 'PodList', items: [pod('a'), pod('b')] }))
const SMALL = ['--overcommit', '0,50', '--seeds', '1', '--until', '2h', '--jobs', '1']

describe('headroom whatif', () => {
  it('sweeps the pods of a cluster, and writes the scenario and the report', async () => {
    const scenario = join(folder, 'mine.scenario.yaml')
    const out = join(folder, 'plan')
    const more = ['--scenario', scenario, '--out', out]
    const { code, stdout } = await headroom(['whatif', '--kubernetes', `${pods},${nodes}`, ...SMALL, ...more])
    expect(code).toBe(0)
    expect(stdout).toContain(
      '1 node with 1 GPU, 24,576 MiB of VRAM\n2 GPU pods (2 running): 28,672 MiB of VRAM',
    )
    expect(stdout).toMatch(/^50% /m)
    expect(readFileSync(scenario, 'utf8')).toContain('name: ml/a')
    expect(existsSync(join(out, 'report.html'))).toBe(true)
  })

  it('prints nothing but JSON on stdout with --json', async () => {
    const { summary } = await headroomJson<{ readonly summary: readonly object[] }>([
      ...['whatif', '--kubernetes', `${pods},${nodes}`, ...SMALL, '--json'],
    ])
    expect(summary).toMatchObject([{ overcommit_percent: 0 }, { overcommit_percent: 50 }])
  })

  it.each([
    [join(folder, 'absent.json'), 'no such file'],
    [write(folder, 'text.json', 'NAME READY'), 'not JSON. Use kubectl get … -o json.'],
    [write(folder, 'key.json', '{\n"kind": "List",\n5}'), 'not JSON, in line 3.'],
    [write(folder, 'early.json', '{\n"kind": "List",\n"items": ['), 'the file ends early, in line 3.'],
    [write(folder, 'word.json', '{\n"kind": "Li'), 'the file ends early, in line 2.'],
    [write(folder, 'empty.json', '\n'), 'the file is empty.'],
    [write(folder, 'no-items.json', '{"kind": "PodList"}'), 'items must be a list.'],
    [write(folder, 'five.json', '5'), 'not a Kubernetes object'],
    [nodes, 'no pod that uses a GPU was found'],
    [pods, 'no node with GPUs was found'],
  ])('refuses %s with exit code 2 and says what is missing', async (file, message) => {
    const { code, stderr } = await headroom(['whatif', '--kubernetes', file, ...SMALL])
    expect(code).toBe(2)
    expect(stderr).toContain(message)
  })
})
