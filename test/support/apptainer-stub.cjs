#!/usr/bin/env node
/**
 * A stand-in for apptainer. It takes the options that the server gives and no others, and runs the program of the
 * container in namespaces of its own, in a folder with the programs of this host. What it was told is in `calls`,
 * its answers are in `answers.json`, both in the folder that HEADROOM_STUB_FOLDER of the wrapper names.
 */
const { appendFileSync, mkdirSync, readFileSync, writeFileSync, existsSync } = require('node:fs')
const { dirname, join } = require('node:path')

const [folder, ...given] = process.argv.slice(2)
const answers = JSON.parse(readFileSync(join(folder, 'answers.json'), 'utf8'))
appendFileSync(join(folder, 'calls'), `${JSON.stringify({ arguments: given, env: process.env })}\n`)

const ALONE = new Set([
  ...[
    '--containall',
    '--cleanenv',
    '--no-home',
    '--pid',
    '--ipc',
    '--uts',
    '--net',
    '--no-init',
    '--no-eval',
  ],
  ...['--no-umask', '--writable-tmpfs', '--no-privs', '--no-rocm', '--no-nv', '--nvccli'],
])
const WITH_VALUE = new Set([
  ...[
    '--no-mount',
    '--network',
    '--security',
    '--pids-limit',
    '--memory',
    '--memory-swap',
    '--cpus',
    '--mount',
  ],
])

function fatal(text) {
  process.stderr.write(`FATAL:   ${text}\n`)
  process.exit(255)
}

if (given[0] === '--version') console.log(answers.version)
else if (given[0] === 'buildcfg') console.log(`PACKAGE_NAME=apptainer\nAPPTAINER_CONFDIR=${folder}/etc`)
else if (given[0] === '--silent' && given[1] === 'pull') pull(given.slice(2))
else if (given[0] === '--silent' && given[1] === 'exec') exec(given.slice(2))
else fatal(`unknown command ${given.join(' ')}`)

function pull([flag, file, source, ...more]) {
  if (flag !== '--disable-cache' || more.length > 0) fatal('unexpected arguments')
  const answer = answers.registry[source] ?? 'manifest unknown'
  if (answer !== 'here') fatal(`While making image from oci registry: ${answer}`)
  setTimeout(() => writeFileSync(file, source), answers.pullMs ?? 0)
}

function exec(given) {
  const options = []
  const values = (name) => options.filter(([each]) => each === name).map(([, value]) => value)
  while (given[0]?.startsWith('--')) {
    const name = given.shift()
    if (!ALONE.has(name) && !WITH_VALUE.has(name)) fatal(`unknown flag: ${name}`)
    options.push([name, ALONE.has(name) ? null : given.shift()])
  }
  const [image, ...command] = given
  if (!existsSync(image)) fatal(`could not open image ${image}`)
  if (answers.exec === 'hang') return setTimeout(() => {}, 600_000)
  if (answers.exec !== undefined) fatal(answers.exec)
  const root = join(folder, `root-${process.pid}`)
  const mounts = values('--mount').map(mountOf)
  const ids = values('--security').map((text) => text.split(':'))
  const [, uid = '0'] = ids.find(([name]) => name === 'uid') ?? []
  const [, gid = '0', ...groups] = ids.find(([name]) => name === 'gid') ?? []
  const env = {
    PATH: process.env.PATH,
    IMAGE_SAYS: 'hello',
    NVIDIA_VISIBLE_DEVICES: process.env.APPTAINERENV_NVIDIA_VISIBLE_DEVICES,
  }
  const inGroups = groups.length === 0 ? '--clear-groups' : `--groups=${groups.join(',')}`
  mkdirSync(root)
  const script = [
    'ip link set lo up 2>/dev/null || true; set -e',
    'mount -t tmpfs none "$ROOT"',
    'cd "$ROOT"',
    'mkdir -m 1777 tmp; mkdir proc dev usr; for each in bin sbin lib lib64; do ln -s usr/$each $each; done',
    'mount --bind -o ro /usr usr; mount -t proc proc proc',
    'for each in null zero; do touch dev/$each; mount --bind /dev/$each dev/$each; done',
    ...mounts.map(({ source, target, isReadOnly, isFolder }) => {
      const at = `.${target}`
      const make = isFolder ? `mkdir -p ${at}` : `mkdir -p ${dirname(at)}; touch ${at}`
      const readOnly = isReadOnly ? `; mount -o remount,bind,ro ${at}` : ''
      return `${make}; mount --bind ${quoted(source)} ${at}${readOnly}`
    }),
    answers.imageScript === undefined ? '' : `chroot . sh -c ${quoted(answers.imageScript)} &\nwait`,
    `exec chroot . setpriv --reuid=${uid} --regid=${gid} ${inGroups} --no-new-privs --bounding-set=-all --inh-caps=-all ${command.join(' ')}`,
  ]
  const spaces = ['--mount', '--pid', '--ipc', '--uts', '--net', '--fork', '--kill-child=SIGKILL']
  process.execve('/usr/bin/unshare', ['unshare', ...spaces, 'sh', '-c', script.join('\n')], {
    ...env,
    ROOT: root,
  })
}

function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function mountOf(text) {
  const fields = [...text.matchAll(/"((?:[^"]|"")*)"(?:,|$)|([^,]*)(?:,|$)/g)]
    .map(([, inQuotes, plain]) => inQuotes?.replaceAll('""', '"') ?? plain)
    .filter(Boolean)
  const valueOf = (name) => fields.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1)
  const source = valueOf('source')
  const isFolder = require('node:fs').statSync(source).isDirectory()
  return { source, target: valueOf('destination'), isReadOnly: fields.includes('ro'), isFolder }
}
