//! Encryption of connections.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::{SslMode, Tls};
use crate::error::Refusal;

/// The encryption of a mode; `None` for [`SslMode::Disable`].
///
/// # Errors
/// [`Refusal::Certificate`] if a file is absent or has no certificate.
pub(crate) fn connect(tls: &Tls, mode: SslMode) -> Result<Option<MakeRustlsConnect>, Refusal> {
    let provider = Arc::new(ring::default_provider());
    let checks = match (mode, &tls.root) {
        (SslMode::Disable, _) => return Ok(None),
        // As libpq: with a file of roots, `require` checks the chain.
        (SslMode::Require, Some(_)) | (SslMode::VerifyCa, _) => Checks::Chain(chain(tls, &provider)?),
        (SslMode::Prefer | SslMode::Require, _) => Checks::Nothing,
        (SslMode::VerifyFull, _) => Checks::ChainAndName(chain(tls, &provider)?),
    };
    let verifier = Arc::new(Verifier { checks, provider: Arc::clone(&provider) });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(Path::new("TLS"), &error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => {
            let certificates = certificates(certificate)?;
            let key_bytes = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
            let config = config.with_client_auth_cert(certificates, key_bytes);
            config.map_err(|error| unusable(key, &error))?
        }
        _ => config.with_no_client_auth(),
    };
    Ok(Some(MakeRustlsConnect::new(config)))
}

/// Checks of a server's certificate.
#[derive(Debug)]
enum Checks {
    Nothing,
    Chain(Arc<WebPkiServerVerifier>),
    ChainAndName(Arc<WebPkiServerVerifier>),
}

fn chain(tls: &Tls, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, Refusal> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &tls.root {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| unusable(path, &error))?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let place = tls.root.as_deref().unwrap_or(Path::new("root certificates of the system"));
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| unusable(place, &error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Refusal> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(unusable(path, &"it has no certificate in PEM")),
        certificates => certificates.map_err(|error| unusable(path, &error)),
    }
}

fn unusable(path: &Path, message: &dyn std::fmt::Display) -> Refusal {
    Refusal::Certificate { path: path.display().to_string(), message: message.to_string() }
}

#[derive(Debug)]
struct Verifier {
    checks: Checks,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verify = |verifier: &WebPkiServerVerifier| {
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        };
        match &self.checks {
            Checks::Nothing => Ok(ServerCertVerified::assertion()),
            Checks::ChainAndName(verifier) => verify(verifier),
            // The name is compared after the chain is verified.
            Checks::Chain(verifier) => match verify(verifier) {
                Err(Error::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                )) => Ok(ServerCertVerified::assertion()),
                answer => answer,
            },
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
