/**
 * A container of a pod as a process with the files, user, capabilities and network that the pod asks for. Its
 * root has the programs of this machine, and the sources of Headroom in /app in place of an image.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { FROM_SOURCES_ENV, UNMEASURED } from '../headroom-command.ts'
import type { SecurityContext, StackContainer, StackPodObject } from './pod-object.ts'

const ROOT = join(import.meta.dirname, '../../..')
const APP = '/app'
const inApp = (text: string): string => text.replaceAll(ROOT, APP)
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const HEADROOM = [process.execPath, '--import', join(ROOT, 'cli/require-node.mjs'), join(ROOT, 'cli/main.ts')]
/** What the image starts, by its repository. */
const ENTRYPOINTS: Readonly<Record<string, readonly string[]>> = {
  'headroom-controller': HEADROOM.map(inApp),
  'headroom-gpu-server': HEADROOM.map(inApp),
  'registry.k8s.io/kube-scheduler': [],
}

/** Arguments: the new root, whether it is read-only, its mounts, `--`, and the command. */
const ENTER = `set -e
root=$1 is_read_only=$2; shift 2
mount -t tmpfs -o mode=755 headroom "$root"
bind() { mkdir -p "$root$2"; mount --rbind "$1" "$root$2"; }
for path in /usr /proc /dev; do bind $path $path; done
for path in /bin /sbin /lib /lib64; do
  if [ -L $path ]; then cp -P $path "$root$path"; elif [ -d $path ]; then bind $path $path; fi
done
mkdir -p "$root/etc"
for file in passwd group nsswitch.conf ld.so.cache; do cp -L /etc/$file "$root/etc/" 2>/dev/null || true; done
touch "$root/etc/hosts"
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then bind "$1" "$2"; else mount --bind "$1" "$root$2"; fi
  if [ "$3" = ro ]; then mount -o remount,bind,ro "$root$2"; fi
  shift 3
done
shift
if [ "$is_read_only" = true ]; then mount -o remount,ro "$root"; fi
exec chroot "$root" "$@"`

export interface ContainerPlan {
  readonly pod: StackPodObject
  readonly container: StackContainer
  /** An empty folder for its root. */
  readonly root: string
  readonly networkNamespace: string
  readonly env: Readonly<Record<string, string>>
  /** Folder of each volume. */
  readonly volumes: ReadonlyMap<string, string>
  /** Its /etc/hosts. */
  readonly hosts: string
  /** Where compiled sources are kept. */
  readonly cache: string
  readonly args: readonly string[]
}

export function startContainer(plan: ContainerPlan): ChildProcess {
  const { pod, container, root, volumes, hosts, cache } = plan
  const security = { ...pod.spec.securityContext, ...container.securityContext }
  mkdirSync(root, { recursive: true })
  const mounts = [
    ...[ROOT, APP, 'ro', hosts, '/etc/hosts', 'ro', cache, '/var/cache/headroom', 'rw'],
    ...(container.volumeMounts ?? []).flatMap(({ name, mountPath, readOnly }) => {
      const source = volumes.get(name)
      if (source === undefined) throw new Error(`volume ${name} of ${container.name} does not exist`)
      return [source, mountPath, readOnly === true ? 'ro' : 'rw']
    }),
  ]
  const inside = [
    ...['sh', '-c', ENTER, 'enter', root, String(security.readOnlyRootFilesystem === true)],
    ...[...mounts, '--', 'setpriv', ...identity(security), ...commandOf(container), ...plan.args],
  ]
  const entered = [`--net=/run/netns/${plan.networkNamespace}`, 'unshare', '--mount', ...inside]
  const env = Object.entries({ ...FROM_SOURCES_ENV, ...BUNDLES }).map(([name, text]) => [name, inApp(text)])
  return spawn('nsenter', entered, {
    cwd: '/',
    env: {
      ...{ ...UNMEASURED, ...(Object.fromEntries(env) as object), NODE_COMPILE_CACHE: '/var/cache/headroom' },
      ...{ PATH: `${APP}/.tools:${SYSTEM_PATH}`, ...plan.env },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

const BUNDLES = { HEADROOM_BUNDLED_PACKAGES: process.env['HEADROOM_BUNDLED_PACKAGES'] ?? '{}' }

function commandOf({ image = '', command }: StackContainer): readonly string[] {
  const repository = image.replace(/[:@][^/]*$/, '')
  const entrypoint = ENTRYPOINTS[repository]
  if (entrypoint === undefined) throw new Error(`there is no image ${image}`)
  return command ?? entrypoint
}

function identity(security: SecurityContext): readonly string[] {
  const { runAsUser: user = 0, runAsGroup = 0, runAsNonRoot = false, fsGroup, capabilities = {} } = security
  if (runAsNonRoot && user === 0) throw new Error('the container must not run as root')
  if (capabilities.drop?.includes('ALL') !== true) throw new Error('the container has to drop ALL')
  const added = (capabilities.add ?? []).map((name) => `,+${name.toLowerCase()}`).join('')
  return [
    ...['--reuid', String(user), '--regid', String(runAsGroup)],
    ...(fsGroup === undefined ? ['--clear-groups'] : ['--groups', String(fsGroup)]),
    ...['--inh-caps', '-all', '--bounding-set', `-all${added}`],
    ...(security.allowPrivilegeEscalation === false ? ['--no-new-privs'] : []),
  ]
}
