/** The messages of the command: help, versions, and one clear line for invalid input. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { busyScenario, headroom, temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const scenario = write(folder, 'busy.scenario.yaml', busyScenario())
const broken = write(
  folder,
  'broken.scenario.yaml',
  'scenario: x\nversion: 1\nfleet: [{ name: a, gpu: { vram_mib: 1 }\n',
)
const misspelt = write(
  folder,
  'misspelt.scenario.yaml',
  'scenario: x\nversion: 1\nfleet: [{ name: a, gpu: { vram_mb: 1 } }]\n',
)
const noNumber = write(
  folder,
  'no-number.scenario.yaml',
  busyScenario('assert: { final: [{ metric: queue_wait.p99, max: 1 }] }\n'),
)
const csv = write(folder, 'jobs.csv', 'job_id,num_gpu,submit_time,duration\na,1,0,60\nb,2,30,90\n')
const noColumns = write(folder, 'no-columns.csv', 'job_id,num_gpu\na,1\n')
const HEADER = '{"trace":"x","version":1,"t_unit":"ms"}\n'
const task = (id: string, at: number, extra = ''): string =>
  `{"id":"${id}","at":${at},"gpus":1,"vram_mib":100,"work":{"kind":"duration","ms":10000}${extra}}\n`
const badLine = write(folder, 'bad-line.trace.jsonl', `${HEADER}${task('a', 0)}${task('b', 5, ',"wrk":1')}`)
const twice = write(folder, 'twice.trace.jsonl', `${HEADER}${task('a', 0)}${task('a', 5)}`)
const FLEET = ['--nodes', '1', '--gpus-per-node', '4', '--vram-mib', '16384']

describe('the help of the command line', () => {
  it('prints the version of package.json alone on stdout for --version', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
      version: string
    }
    expect(await headroom(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  it.each([
    { args: ['--help'], says: ['serve', 'trace', 'sim'] },
    { args: ['sim', '--help'], says: ['run', 'sweep', 'replay', 'check'] },
    {
      args: ['sim', 'replay', '--help'],
      says: ['--gpus-per-node', '--strategy', '--time-scale', '--nodes-file'],
    },
    { args: ['trace', 'import', '--help'], says: ['openb', 'tiresias', '--vram-map', '--activity-model'] },
  ])('describes headroom $args', async ({ args, says }) => {
    const { code, stdout, stderr } = await headroom(args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const word of says) expect(stdout).toContain(word)
  })
})

const REFUSED: { readonly why: string; readonly args: readonly string[]; readonly says: RegExp }[] = [
  { why: 'an unknown command', args: ['simulate'], says: /unknown command 'simulate'/ },
  {
    why: 'a misspelt command',
    args: ['sim', 'rum', scenario],
    says: /unknown command 'rum' \(Did you mean run\?\)/,
  },
  {
    why: 'a misspelt option',
    args: ['sim', 'run', scenario, '--sed', '3'],
    says: /unknown option '--sed' \(Did you mean one of --seed, --set\?\)/,
  },
  { why: 'a missing argument', args: ['sim', 'run'], says: /missing required argument 'file'/ },
  { why: 'an extra argument', args: ['sim', 'run', scenario, 'more'], says: /too many arguments/ },
  { why: 'a missing option', args: ['trace', 'import', 'tiresias', csv], says: /--output/ },
  {
    why: 'a negative seed',
    args: ['sim', 'run', scenario, '--seed', '-1'],
    says: /--seed.*integer from 0 to 4294967295/,
  },
  {
    why: 'a percentage above 1000',
    args: ['sim', 'run', scenario, '--overcommit', '1001'],
    says: /--overcommit.*from 0 to 1000/,
  },
  {
    why: 'a fractional percentage',
    args: ['sim', 'run', scenario, '--overcommit', '1.5'],
    says: /--overcommit.*integer/,
  },
  {
    why: 'a field that is set twice',
    args: ['sim', 'run', scenario, '--set', 'fleet.0.gpus=2', '--set', 'fleet.0.gpus=4'],
    says: /--set.*fleet\.0\.gpus is set twice/,
  },
  {
    why: 'a percentage given in two ways',
    args: [
      'sim',
      'run',
      scenario,
      '--overcommit',
      '50',
      '--set',
      'config.default_vram_overcommit_percent=20',
    ],
    says: /--overcommit and --set config\.default_vram_overcommit_percent set the same field/,
  },
  { why: 'a time without a unit', args: ['sim', 'run', scenario, '--until', '3'], says: /--until.*unit/ },
  {
    why: 'a falling range',
    args: ['sim', 'sweep', scenario, '--overcommit', '100..0'],
    says: /--overcommit.*A\.\.B:STEP/,
  },
  {
    why: 'a range beyond the limits',
    args: ['sim', 'sweep', scenario, '--overcommit', '0..2000:500'],
    says: /--overcommit.*between 0 and 1000/,
  },
  {
    why: 'a range of too many values',
    args: ['sim', 'sweep', scenario, '--seeds', '0..100000'],
    says: /--seeds.*100001 values/,
  },
  {
    why: 'a list that contains a word',
    args: ['sim', 'sweep', scenario, '--overcommit', '0,50,x'],
    says: /--overcommit.*comma-separated list/,
  },
  {
    why: 'a trace as a scenario',
    args: ['sim', 'run', twice],
    says: /is a trace and no scenario: `headroom sim replay`/,
  },
  {
    why: 'no broker',
    args: ['sim', 'sweep', scenario, '--overcommit', '0', '--workers', 'x'],
    says: /--workers is "x"; it must be .*nats:/,
  },
  {
    why: 'a missing task file',
    args: ['apply', '-f', 'nowhere.yaml'],
    says: /^error: nowhere\.yaml: no such file or folder\n/,
  },
  { why: 'a folder as a task file', args: ['submit', '-f', '/'], says: /^error: \/: it is a folder\n/ },
  {
    why: 'a missing file of variables',
    args: ['run', '--vram', '1Gi', '--env-file', 'nowhere', '--', 'true'],
    says: /^error: --env-file nowhere: no such file or folder\n/,
  },
  {
    why: 'a missing token file',
    args: ['ps', '--token-file', 'nowhere'],
    says: /^error: --token-file nowhere: no such file or folder\n/,
  },
  {
    why: 'missing results',
    args: ['sim', 'compare', 'nowhere', scenario],
    says: /nowhere: no such file or folder/,
  },
  {
    why: 'a scenario as a result',
    args: ['sim', 'compare', scenario, scenario],
    says: /not the result of `sim run` or `sim sweep`/,
  },
  { why: 'a sweep without values', args: ['sim', 'sweep', scenario], says: /add --overcommit/i },
  {
    why: 'a sweep without a field',
    args: ['sim', 'sweep', scenario, '--set', 'config.idle=60'],
    says: /config\.idle=60.*config\.idle: /,
  },
  {
    why: 'a missing scenario',
    args: ['sim', 'run', join(folder, 'none.yaml')],
    says: /none\.yaml:1:1: no such file/,
  },
  { why: 'broken YAML', args: ['sim', 'run', broken], says: /broken\.scenario\.yaml:4:1: / },
  { why: 'broken YAML, in a worker', args: ['sim', 'check', broken], says: /broken\.scenario\.yaml:4:1: / },
  {
    why: 'an unknown field',
    args: ['sim', 'sweep', misspelt, '--overcommit', '0'],
    says: /:3:\d+: fleet\[0\]\.gpu\.vram_mb: /,
  },
  {
    why: 'an assertion on an unknown number',
    args: ['sim', 'check', noNumber],
    says: /did you mean queue_wait_s\.p99\?/,
  },
  { why: 'a folder that is a file', args: ['sim', 'run', scenario, '--out', csv], says: /--out .*jobs\.csv/ },
  {
    why: 'a missing trace',
    args: ['sim', 'replay', join(folder, 'none'), ...FLEET],
    says: /none: no such file/,
  },
  {
    why: 'a fleet without a description',
    args: ['sim', 'replay', badLine, '--nodes', '1'],
    says: /--gpus-per-node, --vram-mib/,
  },
  {
    why: 'a fleet with two descriptions',
    args: ['sim', 'replay', badLine, ...FLEET, '--nodes-file', csv],
    says: /--nodes-file defines the fleet/,
  },
  {
    why: 'VRAM of unnamed models',
    args: ['sim', 'replay', badLine, ...FLEET, '--vram-map', 'A=1'],
    says: /--vram-map requires/,
  },
  {
    why: 'an unknown strategy',
    args: ['sim', 'replay', badLine, ...FLEET, '--strategy', 'best'],
    says: /best_fit, spread, fifo/,
  },
  {
    why: 'a time scale of 0',
    args: ['sim', 'replay', badLine, ...FLEET, '--time-scale', '0'],
    says: /--time-scale.*greater than 0/,
  },
  {
    why: 'a sample above 1',
    args: ['sim', 'replay', badLine, ...FLEET, '--sample', '1.1'],
    says: /--sample.*at most 1/,
  },
  { why: 'a raw file', args: ['sim', 'replay', csv, ...FLEET], says: /jobs\.csv:1: .*headroom trace import/ },
  {
    why: 'a line of a trace',
    args: ['sim', 'replay', badLine, ...FLEET],
    says: /bad-line\.trace\.jsonl:3: wrk: /,
  },
  {
    why: 'a duplicate id',
    args: ['sim', 'replay', twice, ...FLEET],
    says: /id: a comes a second time/,
  },
  {
    why: 'an invalid line of an inspected trace',
    args: ['trace', 'inspect', badLine],
    says: /bad-line\.trace\.jsonl:3: wrk: /,
  },
  {
    why: 'an unknown format',
    args: ['trace', 'import', 'opnb', csv, '-o', join(folder, 'x')],
    says: /Did you mean openb\?/,
  },
  {
    why: 'missing columns',
    args: ['trace', 'import', 'tiresias', noColumns, '-o', join(folder, 'x')],
    says: /has no column submit_time, duration/,
  },
  {
    why: 'an empty window',
    args: ['trace', 'import', 'tiresias', csv, '-o', join(folder, 'x'), '--from', '2h', '--to', '1h'],
    says: /--to must be after/,
  },
  {
    why: 'an invalid map',
    args: ['trace', 'import', 'tiresias', csv, '-o', join(folder, 'x'), '--vram-map', 'G2'],
    says: /vram_map: "G2" must be KEY=VALUE/,
  },
  {
    why: 'an output path that is not writable',
    args: ['trace', 'import', 'tiresias', csv, '-o', join(folder, 'no', 'x')],
    says: /--output .*cannot be written/,
  },
]

describe('invalid input exits with 2, names the change needed, and leaves stdout empty', () => {
  it.concurrent.each(REFUSED)('$why', async ({ args, says }) => {
    const { code, stdout, stderr } = await headroom(args)
    expect(stderr).toMatch(says)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(2)
  })
})
