/**
 * How we prove at a provider's endpoints that we are the registered client (RFC 6749 section 2.3, RFC 7523).
 */
import * as oauth from 'openid-client';
import { Refusal } from '../errors.ts';
import { Secret } from '../secret.ts';
import type { Profile } from './profile.ts';

/** The client registered at a provider. */
export interface Registration {
  /** Name in the configuration. */
  readonly id: string;
  readonly profile: Profile;
  readonly clientId: string;
  readonly clientSecret: Secret | null;
  readonly clientKey: oauth.CryptoKey | null;
}

/**
 * `Authorization: Basic` without the form-encoding of RFC 6749 section 2.3.1, which many servers do not undo.
 */
export function rawBasic({ clientId, clientSecret }: Registration): string {
  return `Basic ${Buffer.from(`${clientId}:${clientSecret?.reveal() ?? ''}`).toString('base64')}`;
}

/** @throws Refusal `provider_misconfigured` when the key of `private_key_jwt` is missing. */
export function clientAuthentication(registration: Registration): oauth.ClientAuth {
  const text = registration.clientSecret?.reveal() ?? '';
  switch (registration.profile.clientAuthentication) {
    case 'none':
      return oauth.None();
    case 'client_secret_post':
      return oauth.ClientSecretPost(text);
    case 'client_secret_basic':
      return oauth.ClientSecretBasic(text);
    case 'client_secret_basic_raw':
      return (_server, _client, _body, headers) => headers.set('authorization', rawBasic(registration));
    case 'private_key_jwt': {
      if (registration.clientKey === null) throw new Refusal('provider_misconfigured');
      return oauth.PrivateKeyJwt(registration.clientKey);
    }
  }
}
