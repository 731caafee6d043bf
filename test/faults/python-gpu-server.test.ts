/** The example server in Python, written from the protocol documents alone, satisfies every examined rule. */
import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { RULES } from '../../simulator/experiment/conformance/conformance.ts'
import type { RuleReport } from '../../simulator/experiment/conformance/conformance.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'

const ROOT = join(import.meta.dirname, '../..')
const EXAMPLES = join(ROOT, 'examples')
const VENV = join(ROOT, 'node_modules/.cache/python-examples')
const PYTHON = join(VENV, 'bin/python')

/**
 * Faults for which the rule with the most attempts needs about a minute: the examiner waits 2 s for each lost
 * message.
 */
const SEED = '072ad564-c864-4081-b7ea-b80f1aacc6e6'
// A busy machine may take a second to start a process: a shorter lease would end it first.
const EXAMINED = ['--heartbeat', '250', '--lease', '2500', '--seed', SEED, '--json']
const TIMEOUT_MS = 240_000

/** Each lane has its own server; rules without a lane are examined in the last one. */
const LANES: readonly (readonly string[])[] = [['R1–R8'], ['R4', 'R3'], []]

/** A lane that fails leaves no server of another lane behind. */
const started = new Set<ChildProcess>()
afterAll(() => started.forEach((child) => child.kill('SIGKILL')))

const isLeftOut = whyNoNatsServer() !== null || whyNoPython() !== null

it.skipIf(isLeftOut)(
  'The GPU server in Python of examples/ satisfies every rule of the protocol',
  { timeout: TIMEOUT_MS },
  async () => {
    installRequirements()
    const broker = await startNatsServer()
    const rules = [...new Set(RULES.map(({ rule }) => rule))]
    const lanes = LANES.map((lane) => [
      ...lane,
      ...(lane.length > 0 ? [] : rules.filter((rule) => !LANES.flat().includes(rule))),
    ])
    const reports = await Promise.all(
      lanes.map((lane, i) => examineOneServer(broker.url, `python-${i}`, lane)),
    )
    expect(new Set(reports.flat().map(({ claim }) => claim))).toEqual(
      new Set(RULES.map(({ claim }) => claim)),
    )
    // It prepares nothing, and opens no channels.
    const notTested = RULES.filter(({ feature }) => feature !== undefined).map(({ claim }) => claim)
    const notKept = reports.flat().filter(({ verdict }) => verdict !== 'kept')
    expect(notKept.filter(({ verdict }) => verdict === 'broken')).toEqual([])
    expect(notKept.map(({ claim }) => claim)).toEqual(notTested)
  },
)

async function examineOneServer(
  url: string,
  name: string,
  rules: readonly string[],
): Promise<readonly RuleReport[]> {
  const server = startServer(url, name)
  try {
    const nodeId = await server.nodeId
    const reports: RuleReport[] = []
    for (const rule of rules) {
      const { stdout, stderr } = await headroom([
        'conformance',
        '--nats',
        url,
        '--node',
        nodeId,
        ...EXAMINED,
        '--only',
        rule,
      ])
      if (stdout === '') throw new Error(`${rule} was not examined: ${stderr}`)
      reports.push(...(JSON.parse(stdout) as { reports: RuleReport[] }).reports)
    }
    return reports
  } finally {
    await server.end()
  }
}

function startServer(url: string, name: string): { readonly nodeId: Promise<string>; end(): Promise<void> } {
  const args = [
    join(EXAMPLES, 'gpu_server.py'),
    '--nats',
    url,
    '--name',
    name,
    '--state-dir',
    temporaryFolder(),
  ]
  const child = spawn(PYTHON, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
  })
  started.add(child)
  let output = ''
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const nodeId = new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString()
      const id = /^Node (\S+) serves/m.exec(output)?.[1]
      if (id !== undefined) resolve(id)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('error', reject)
    void ended.then(() => reject(new Error(`gpu_server.py ended: ${output}`)))
  })
  return {
    nodeId,
    end: () => {
      child.kill('SIGKILL')
      return ended
    },
  }
}

/** Created once, and again when the requirements or the Python version change. */
function installRequirements(): void {
  const requirements = join(EXAMPLES, 'requirements.txt')
  const wanted = `${execFileSync('python3', ['--version']).toString()}${readFileSync(requirements, 'utf8')}`
  const made = join(VENV, 'made-of')
  if (existsSync(made) && readFileSync(made, 'utf8') === wanted) return
  rmSync(VENV, { recursive: true, force: true })
  mkdirSync(join(VENV, '..'), { recursive: true })
  execFileSync('python3', ['-m', 'venv', VENV])
  execFileSync(PYTHON, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements])
  writeFileSync(made, wanted)
}

/**
 * Null when python3 is installed; otherwise the reason to skip the test. Throws in continuous integration.
 */
function whyNoPython(): string | null {
  try {
    execFileSync('python3', ['--version'], { stdio: 'ignore' })
    return null
  } catch {
    const why = 'python3 is not installed: `apt-get install python3 python3-venv`'
    if (process.env['CI']) throw new Error(why)
    process.stderr.write(`skipped: ${why}\n`)
    return why
  }
}
