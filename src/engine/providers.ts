/** The configured providers by name. */
import { Refusal } from '../errors.ts';
import type { Provider } from '../provider/client.ts';

export interface ProviderRegistry {
  /** @throws Refusal `provider_misconfigured` when there is no provider of this name. */
  get(id: string): Provider;
  has(id: string): boolean;
  ids(): readonly string[];
}

export function providerRegistry(providers: ReadonlyMap<string, Provider>): ProviderRegistry {
  return {
    get(id) {
      const provider = providers.get(id);
      if (provider === undefined) {
        throw new Refusal('provider_misconfigured', {
          message: `providers.${id}: is not configured`,
          facts: { provider: id },
        });
      }
      return provider;
    },
    has: (id) => providers.has(id),
    ids: () => [...providers.keys()],
  };
}
