/**
 * Files that the commands of README create in a checkout are not sources: git does not list them, and `make
 * check` does not read them.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ESLint } from 'eslint'
import { getFileInfo } from 'prettier'
import { describe, expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const IGNORE_FILES = ['.gitignore', '.prettierignore'].map((name) => join(ROOT, name))

/**
 * Created by `headroom sim sweep --out plan`, `nats config -o broker/nats.conf`, `gpu-server`, `make up`,
 * `trace import`, `sim fuzz`, `make kubernetes-tools`.
 */
const LITTER = [
  'plan/report.html',
  'plan/worst/run.ts',
  'broker/nats.conf',
  'broker/keys/controller.nk',
  'node-gpu-1.nk',
  'node-state/guards/1/task.json',
  'node-state/work/task/model.ts',
  'data/demo/live-demo/headroom.db',
  'week.trace.jsonl',
  'fuzz-7.scenario.yaml',
  '.tools/kube-apiserver',
]

describe.each(LITTER)('%s', (path) => {
  it('is ignored by git, prettier and eslint', async () => {
    expect(spawnSync('git', ['check-ignore', '--no-index', '-q', path], { cwd: ROOT }).status).toBe(0)
    expect((await getFileInfo(join(ROOT, path), { ignorePath: IGNORE_FILES })).ignored).toBe(true)
    expect(await new ESLint({ cwd: ROOT }).isPathIgnored(join(ROOT, path))).toBe(true)
  })
})

it('Sources, scenarios and their traces are not ignored', async () => {
  const sources = [
    'controller/controller.ts',
    'scenarios/traces/openb-sample.trace.jsonl',
    'simulator/experiment/advisor/idleness.ts',
    'deploy/nats/README.md',
  ]
  for (const path of sources)
    expect(spawnSync('git', ['check-ignore', '--no-index', '-q', path], { cwd: ROOT }).status).toBe(1)
  for (const path of ['controller/controller.ts', 'simulator/experiment/advisor/idleness.ts']) {
    expect(await new ESLint({ cwd: ROOT }).isPathIgnored(join(ROOT, path))).toBe(false)
  }
})
