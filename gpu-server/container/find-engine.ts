/** Finds the container engine of this host, or apptainer. */
import type { Apptainer } from './apptainer-command.ts'
import { EngineApi, type EngineKind } from './engine-api.ts'
import type { Engine } from './engine-containers.ts'
import { findApptainer } from './find-apptainer.ts'
import { errorText } from '../../protocol/error-text.ts'

export type ContainerRuntime = 'auto' | 'docker' | 'podman' | 'apptainer' | 'none'

interface Place {
  readonly kind: EngineKind
  readonly socketPath: string
}

type Environment = Readonly<Record<string, string | undefined>>

/** The engine that answers, or why none does. `auto` prefers Docker, then podman. */
export async function findEngine(
  runtime: Exclude<ContainerRuntime, 'none'>,
  env: Environment,
): Promise<{ readonly engine: Engine | Apptainer } | { readonly engine: null; readonly why: string }> {
  const whys: string[] = []
  for (const place of placesOf(env).filter(({ kind }) => runtime === 'auto' || kind === runtime)) {
    try {
      const api = new EngineApi(place.socketPath)
      const { kind, version } = await api.version()
      return { engine: { kind, version, socketPath: place.socketPath, ...(await api.abilities()) } }
    } catch (error) {
      whys.push(errorText(error))
    }
  }
  if (runtime === 'auto' || runtime === 'apptainer') {
    try {
      return { engine: await findApptainer(env) }
    } catch (error) {
      whys.push(errorText(error))
    }
  }
  return { engine: null, why: whys.join('; ') }
}

/** The variables that the engines' own clients read, else the usual places. */
function placesOf(env: Environment): readonly Place[] {
  const own = env['XDG_RUNTIME_DIR']
  return [
    { kind: 'docker', socketPath: socketIn(env['DOCKER_HOST']) ?? '/var/run/docker.sock' },
    { kind: 'podman', socketPath: socketIn(env['CONTAINER_HOST']) ?? '/run/podman/podman.sock' },
    ...(own === undefined || socketIn(env['CONTAINER_HOST']) !== null
      ? []
      : [{ kind: 'podman', socketPath: `${own}/podman/podman.sock` } as const]),
  ]
}

/** An engine on another host cannot run tasks of this one. */
function socketIn(url: string | undefined): string | null {
  return /^unix:\/\/(\/.+)$/.exec(url ?? '')?.[1] ?? null
}
