/** Containers of the engines that tests have: one on a Unix socket, a stand-in for apptainer in a folder. */
import { join } from 'node:path'
import type { Apptainer } from '../../gpu-server/container/apptainer-command.ts'
import {
  ApptainerContainers,
  type ApptainerContainersOptions,
} from '../../gpu-server/container/apptainer-containers.ts'
import type { Containers } from '../../gpu-server/guard/containers.ts'
import { fakeContainers } from './fake-engine.ts'

function stubApptainer(folder: string): Apptainer {
  return {
    kind: 'apptainer',
    version: '1.4.0',
    program: join(folder, 'apptainer'),
    isRoot: process.getuid?.() === 0,
    seccompProfile: null,
  }
}

export function stubContainers(
  folder: string,
  stateFolder: string,
  more: Partial<ApptainerContainersOptions> = {},
): Promise<ApptainerContainers> {
  return ApptainerContainers.open({
    apptainer: stubApptainer(folder),
    stateFolder,
    pull: 'missing',
    onNote: () => {},
    endMs: 1_000,
    ...more,
  })
}

/** @param place a socket, or the folder of an apptainer */
export async function containersAt(place: string, stateFolder: string): Promise<Containers> {
  return place.endsWith('.sock') ? fakeContainers(place, stateFolder) : stubContainers(place, stateFolder)
}
